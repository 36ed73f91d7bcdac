"""``docs/vectors.md``: how to use the test vectors, and which planted bugs they refute on their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from specverify.mutants import CATEGORIES
from specverify.trust.vector_kills import VectorRow
from specverify.vectors.all_vectors import KINDS, all_vectors
from specverify.vectors.conventions import FAMILIES, FLAGS
from specverify.vectors.sample_counts import ALARM, DETECT
from specverify.vectors.vector import FORMAT_VERSION, RESULTS_FORMAT

INTRODUCTION = f"""# Test vectors for any language

`vectors/` has test vectors for implementations in any language. A vector is a question with a known answer, as JSON.
For example, a vector has p, q, the drafts and all uniforms of one round; its answer is the tokens that the round emits.
Your program reads the vectors and writes its answers to a file. `specverify vectors check` grades this file. Only the
grading needs Python.

```
specverify vectors export DIR                  writes the files of vectors
my_program DIR > results.json
specverify vectors check results.json --only verify_chain/inverse-cdf --only "warp/top-k and top-p"
```

The vectors are sorted into [kinds](#kinds) by their question, such as `verify_chain`, and within a kind into groups,
such as `verify_chain/inverse-cdf`. `--only` takes the name of a kind or of a group. This is a vector of the kind
`verify_chain`: one draft, token 1, is rejected by its coin, and the final uniform draws token 2 from the residual.

```
{{
  "id": "verify_chain/inverse-cdf/generic-g1-d1-e2", "kind": "verify_chain", "result": "valid",
  "flags": ["inverse-cdf"], "notes": ["residual", "residual-row", "coin", "after-a-rejection", "reused-uniform"],
  "inputs": {{
    "p": [["1/3", "1/3", "1/3"], ["4/7", "2/7", "1/7"]], "q": [["2/9", "5/9", "2/9"]],
    "draft": [1], "coins": ["3/4"], "final": "9/16"
  }},
  "expected": {{"accepted": 0, "tokens": [2]}}
}}
```

`schema.json` has the fields of `inputs` of each kind.

**Numbers.** Numbers are strings such as `"3/8"`, so that every language reads them exactly. Uniforms are multiples of
2^-24, which float32 represents exactly. Each uniform is far enough from every threshold that rounding in float32
changes no decision. In the kind `boundary` uniforms are at thresholds, but there all numbers are multiples of powers of
two, so float32 makes no rounding error. So a correct program in float32 can answer every vector right. All answers are
computed from `reference/`, in rationals. `schema.json` defines the format, version {FORMAT_VERSION}. The id of a vector
does not change when others are added.

**What is right.** Correct programs may differ, for example in whether `u = p/q` accepts. Such a choice is a
*convention*. The field `result` of a vector has one of three values:

* `valid`: the answer under `expected` is right.
* `acceptable`: each convention has its own right answer. A program must follow one convention in all its answers.
* `invalid`: the program must refuse the input. An answer is wrong only if `must_not` describes it.

The field `flags` has the group of the vector, without the kind. The field `notes` names the classes of bugs that the
vector detects. At the beginning of each file, the flags and notes are explained, with records of such bugs in public
projects.

**The answers** are one file:

```json
{{
  "format": "{RESULTS_FORMAT}", "format_version": {FORMAT_VERSION}, "program": "its name",
  "answers": [
    {{"id": "verify_chain/inverse-cdf/generic-g1-d1-e2", "answer": {{"accepted": 0, "tokens": [2]}}}},
    {{"id": "boundary/inverse-cdf/nan-in-p", "answer": {{"refused": true}}}}
  ]
}}
```

**The grading.** For each group `check` prints the number of right answers, the first wrong answers, and the convention
that the answers follow. A program that mixes two conventions fails, with a message. A missing answer never counts as
right; use `--only` to name the groups that your program answers. The exit status is 0 if all answers are right, 1 if
one is wrong or two conventions are mixed, 2 if there is no file of answers, and 3 if an answer is missing or
undecided.

In `law_of_round` and `warp` the answer is a law: outcomes with probabilities, as strings or as numbers. Strings must
be equal to the expected probabilities as rationals ("2/4" equals "1/2"). Numbers are right if they differ by no more
than the rounding of float64, wrong if they differ by more than the rounding of float32, and undecided between the two
(`specverify/laws/rounding.py`). A program that can only sample gives `counts` instead of a law. A chi-square test
judges them, with the false-alarm rate {ALARM:g} per vector. Counts are undecided if they are too few to detect a total
variation of {DETECT:g}.

`examples/consumers/` has one program each in C++, Rust and JavaScript: a single file, without libraries. Each program
has an option that switches on a bug, which the grading detects.
"""

OF_KINDS = "All vectors of a kind ask the same question. The third column has the fields of `answer`.\n"
OF_GROUPS = """
All vectors of a group have one *rule*, by which the answer follows from the inputs and the random numbers. In the
table a *coin* is the uniform that decides a draft. A *mass* is a probability that need not be normalised. A *key* is
an exponential random number, one for each token. Unless the rule states otherwise, a rejected draft is replaced by a
draw from the residual. The third column shows how the ids of the group begin.
"""
OF_CHOICES = """\
Correct programs differ in these choices. Each choice has two or three flags, one for each convention. If the answer of
a vector depends on a choice, its result is `acceptable`, and it has an answer for each flag. A program may follow any
flag of a choice, but the same flag in all its answers.
"""
OF_BUGS = """
## Which planted bugs the vectors refute

The tables show which faults the vectors detect by themselves, without the checks of specverify. A *mutant* is a
program with one planted bug; [the kill matrix](kill-matrix.md) lists all. Each mutant answers all vectors that fit its
kind of program:

* A decoder or a verifier answers `law_of_round`: its law is enumerated with the models of the vector. It also decodes
  the texts of `stop`. In `verify_chain` its drafts are those of the vector, and its other draws get the uniforms of
  the vector. In `boundary` all uniforms are at one end of their interval.
* An engine that takes requests decodes texts, also with sampling parameters. If its forward passes can be recorded, it
  also answers `cache_lengths` for its rounds.

A bug is refuted by a vector if its answer is wrong and the answer of the same program without the bug is right. *First
refuted by* has the id of the first such vector of each kind.

Generated by `specverify vectors mutants --markdown docs/vectors.md`.
"""

NO_QUESTION = {
    "an engine": "no vector has the situation that it needs",
    "a verifier with its own vocabulary": "it is examined at single calls of a size that no vector has",
    "an engine with its own models": "its models and its prompt are in no vector",
    "a verifier": "its rows, parameters or random numbers are in no vector",
    "a decoder": "it decodes with options or models that are in no vector",
}
"""Kind of subject -> why no vector applies to a bug in it."""


def vector_page(rows: Sequence[VectorRow]) -> str:
    """Return the text of ``docs/vectors.md``; ``rows`` are the results of the test vectors on all planted bugs."""
    killed = [row for row in rows if row.killers]
    parts = [INTRODUCTION, *_kinds(), *_families(), OF_BUGS, _summary(rows), ""]
    for letter, group in groupby(killed, key=lambda row: row.category):
        parts += [
            f"\n### {letter}. {CATEGORIES[letter].capitalize()}\n",
            "| mutant | what is wrong | first refuted by |",
            "|---|---|---|",
        ]
        parts += map(line_of, group)
    return "\n".join([*parts, *_left_out(rows)]) + "\n"


def _kinds() -> list[str]:
    """Return the lines of the page's section on the kinds of test vectors: a table of the kinds, and their groups."""
    counts = Counter(vector.kind for vector in all_vectors().values())
    lines = ["\n## Kinds\n", OF_KINDS, "| kind | the question | fields of an answer | vectors |", "|---|---|---|---:|"]
    for kind in KINDS:
        fields = "; ".join(f"`{field}`: {said}" for field, said in kind.fields.items())
        lines.append(f"| `{kind.name}` | {kind.summary} | {fields} | {counts[kind.name]} |")
    of_group = Counter(vector.group for vector in all_vectors().values())
    starts = {vector.group: vector.id.rpartition("/")[0] for vector in all_vectors().values()}
    lines.append(OF_GROUPS)
    lines += ["| group | vectors | ids begin with | rule |", "|---|---:|---|---|"]
    algorithms = 0
    for group, number in of_group.items():
        flag = group.partition("/")[2]
        if flag in FLAGS:
            lines.append(f"| `{group}` | {number} | `{starts[group]}/` | {FLAGS[flag]} |")
        else:
            algorithms += number
    lines.append(
        f"| `law_of_round/ALGORITHM` | {algorithms} | `law_of_round/ALGORITHM/` | the algorithm of that name in the "
        "registry, with these options |"
    )
    return lines


def _families() -> list[str]:
    lines = ["\n## Conventions that are a choice\n", OF_CHOICES, "| choice | flag | meaning |", "|---|---|---|"]
    return lines + [
        f"| {family} | `{flag}` | {said} |" for family, flags in FAMILIES.items() for flag, said in flags.items()
    ]


def _summary(rows: Sequence[VectorRow]) -> str:
    killed = sum(bool(row.killers) for row in rows)
    asked = sum(row.asked > 0 for row in rows)
    return (
        f"{killed} of {len(rows)} planted bugs are refuted by a vector. {asked - killed} more give\n"
        f"the same answers as without the bug, and no vector fits the other {len(rows) - asked}."
    )


def _left_out(rows: Sequence[VectorRow]) -> list[str]:
    """Return one line of Markdown for each bug in ``rows`` that no vector refutes, with the reason."""
    quiet = [row for row in rows if row.asked and not row.killers]
    silent = [row for row in rows if not row.asked]
    lines = [
        "\n### Bugs with the same answers as without the bug\n",
        "The fault changes no answer, or it needs sizes that no vector has. The check in the last column detects it.\n",
        "| mutant | what is wrong | vectors answered | the check that detects it |",
        "|---|---|---:|---|",
    ]
    lines += map(line_of, quiet)
    lines += [
        "\n### Bugs that no vector fits\n",
        "| mutant | what is wrong | why | the check that detects it |",
        "|---|---|---|---|",
    ]
    return [*lines, *map(line_of, silent)]


def line_of(row: VectorRow) -> str:
    """Return the table line of ``row``, one planted bug."""
    start = f"| {row.name} | {_safe(row.summary)} |"
    if row.killers:
        return f"{start} {_ids(row)} |"
    if row.asked:
        return f"{start} {row.asked} | {_words(row.killed_by)} |"
    return f"{start} {row.shape}: {NO_QUESTION[row.shape]} | {_words(row.killed_by)} |"


def _ids(row: VectorRow) -> str:
    return "<br>".join(f"`{killer}`" for killer in row.killers)


def _words(check: str) -> str:
    return check.replace("_", " ")


def _safe(text: str) -> str:
    return text.replace("|", "\\|")
