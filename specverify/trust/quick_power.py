"""Construct the quick plan and measure its power, on planted bugs, twins of idioms and wrong engines.

    python -m specverify.trust.quick_power kills FILE [--kind K] [--part I/N]
    python -m specverify.trust.quick_power plan FILE [--kind K]
    python -m specverify.trust.quick_power compare FILE [--kind K] [--part I/N] [--no-full]
    python -m specverify.trust.quick_power page FILE

An idiom is a usual way to write a verifier; its twin is the same code with one fault. ``kills`` records which case
refutes which bug, one line per bug; ``plan`` computes specverify/run/quick.toml from them. ``compare`` records which
bugs the plan and all cases refute, one line per bug. ``page`` writes docs/quick.md from those lines.

``--idioms FOLDER`` adds the twins of the idioms in a folder of tables. ``--check NAME`` tries one check alone on every
bug, and replaces its cases in the plan. Lines are appended to a file: bugs that it contains are not run again. Only
cases whose law takes at most ``POOL_RUNS`` runs are candidates for a plan.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from specverify.base.verdict import Examination, Status
from specverify.checks import EXACT_CHECKS, Case, Check, Conditions
from specverify.checks.check import beyond_reach
from specverify.checks.forgetting import forget_laws
from specverify.intercept.cpython import patches
from specverify.intercept.everywhere import libraries_replaced
from specverify.mutants import Mutant, mutants
from specverify.mutants.made_engines import serving, wrong_engines
from specverify.mutants.mutant import correct
from specverify.mutants.numpy_verifiers import of_logits, one_row, ragged
from specverify.reference import Draws, LanguageModel, State, Task, Tokens
from specverify.run.quick import CaseName, in_quick, name_of_case, named_cases, quick_plans, spread
from specverify.run.verify import Checklist, not_applicable, verify_subject, warmed_up
from specverify.subjects.external import decode_subject
from specverify.subjects.forms import BATCHED, LOGITS
from specverify.subjects.made_engine import made_subject
from specverify.subjects.subject import Subject
from specverify.subjects.verifier import verifier_subject

POOL_RUNS = 100
"""Largest number of runs, on a correct subject, of a case that may enter a plan."""
POOL, POOL_OF_OTHER_KINDS, POOL_OF_OTHERS = 96, 45, 4
"""Number of cases of a check that are tried on a bug. First: a check that compares laws or tests boundary draws, for a
bare verifier. Second: the same for other subjects. Third: any other check."""
LEAST_CASES, LEAST_OF_ENGINES, LEAST_OF_OTHERS = 8, 16, 2
"""Smallest number of cases of a check in a plan, even if they refute no further bug. First: a check that compares laws.
Second: the same for engines. Third: any other check."""
CASES_OF_A_BUG = 2
"""Number of cases of a plan that must refute each bug."""
MOST_CASES = 25
"""Largest number of cases of a check in a plan."""
AS_A_USER: Mapping[str, Callable[..., Subject]] = {
    "row": verifier_subject,
    "batched": partial(verifier_subject, form=BATCHED),
    "logits": partial(verifier_subject, form=LOGITS),
}
"""Kind -> constructor of the subject of a bare verifier with all variants that a user's verifier has; a planted bug has
fewer."""
PLAN, PAGE = Path(__file__).parent.parent / "run" / "quick.toml", Path("docs") / "quick.md"
RUNS_OF_A_CASE = 20
"""Fixed cost of a case, in units of runs."""
LAWS = frozenset({"law_is_target", "law_is_declared"})
"""The checks that refute the most bugs; they are tried first."""
ENDS = "support_at_boundary_draws"
"""The check for defects that no other check finds: they need tokens with positive probability under one of p and q
only, or rows that differ by rounding."""
_OF_ONE_KIND = re.compile(r"-[ps]\d+|(?<= )\d+")


def right_round(draws: Draws, target: LanguageModel, draft: LanguageModel, tokens: Tokens) -> Tokens:
    """Return the new tokens of one right round of speculative sampling with two drafts, after the text ``tokens``.

    The verifier draws by ``draws`` and reads the models ``target`` and ``draft``.
    """
    state = State(tokens, 3)
    after, _ = correct("speculative-sampling").build(Task(target, draft, horizon=3), gamma=2).step(draws, state)
    return after.tokens[len(tokens) :]


RIGHT: Mapping[str, Callable[[], Subject]] = {
    "row": partial(verifier_subject, one_row, "right"),
    "batched": partial(verifier_subject, ragged, "right", form=BATCHED),
    "logits": partial(verifier_subject, of_logits, "right", form=LOGITS),
    "decoder": partial(decode_subject, right_round, "right"),
    "engine": partial(made_subject, partial(serving, ""), "right"),
}
"""Kind -> constructor of a correct subject, whose cases are the candidates for a plan."""


Pool = Mapping[str, Mapping[CaseName, int]]
"""The cases that may enter a plan. ``pool[check][case]`` is the number of runs of the case on a correct subject."""


class Bug(NamedTuple):
    """A wrong subject that must be refuted; ``open`` creates it, and ``kind`` is the kind of the subject."""

    name: str
    kind: str
    open: Callable[[], Subject]


class Kill(NamedTuple):
    """The result of one case of a check on a bug.

    ``refuted`` states whether the case refutes the bug, and ``runs`` is the number of runs that it made.
    """

    check: str
    case: CaseName
    refuted: bool
    runs: int


def bugs(idioms: Path | None) -> Iterator[Bug]:
    """Yield every bug: the planted bugs, the wrong engines, the bare verifiers, and the twins of the idioms.

    A bare verifier is the verifier inside a planted bug of another kind, such as a decoder, examined alone. A twin is a
    wrong variant of a usual way to write a verifier; ``idioms`` is the folder with their tables, or None.
    """
    for mutant in mutants():
        subject = mutant.open()
        if subject.kind:
            yield Bug(f"planted: {mutant.name}", subject.kind, partial(_as_a_user_gives_it, mutant))
    verifiers = {mutant.name: mutant.verifiers[0] for mutant in mutants() if mutant.verifiers is not None}
    for name, make in wrong_engines(verifiers).items():
        yield Bug(name, "engine", partial(made_subject, make, name))
    for mutant in mutants():
        if mutant.verifiers is not None and mutant.open().kind != "row":
            yield Bug(f"bare: {mutant.name}", "row", partial(verifier_subject, mutant.verifiers[0], mutant.name))
    if idioms is not None:
        sys.path.insert(0, str(idioms))
        for idiom in import_module("tables").IDIOMS:
            if not idiom.unknown:
                wrong = partial(verifier_subject, idiom.wrong, idiom.name, (idiom.gamma,))
                yield Bug(f"idiom: {idiom.table}, {idiom.name}", "row", wrong)


def _as_a_user_gives_it(mutant: Mutant) -> Subject:
    """Return the subject of the planted bug ``mutant`` as it is examined if a user passes the code with the bug.

    The code is then examined in all variants of its kind of subject, such as several numbers of drafts. A mutant
    without such code keeps its own subject.
    """
    subject = mutant.open()
    verify = next((given for given in getattr(mutant.open, "args", ()) if callable(given)), None)
    make = AS_A_USER.get(subject.kind)
    return subject if make is None or verify is None else make(verify, subject.name)


def kills_of(bug: Bug, only: str = "") -> Iterator[Kill]:
    """Yield the results of the candidate cases on a bug, check by check, up to the first check that refutes it.

    ``only`` is the name of the one check to try; empty for all checks.
    """
    subject = warmed_up(bug.open())
    for check in _most_telling_first():
        if only not in {"", check.name} or not_applicable(subject, check) is not None:
            continue
        names, refuted = _tried_of(pool(bug.kind, only), check), False
        cases = list(check.cases(subject))
        for name, runs in names.items():
            for case in named_cases(cases, [name]):
                result = None if beyond_reach(case) else _examination(case, subject)
                if result is not None:
                    refuted |= result.failed
                    yield Kill(check.name, name, result.failed, runs)
        if refuted:
            return


def _tried_of(of_kind: Pool, check: Check) -> Mapping[CaseName, int]:
    """Return the cases of ``check`` to try, with the number of runs of each.

    ``of_kind`` has the candidate cases by check. A check of laws without candidate cases gets those of the check
    ``law_is_target``.
    """
    return of_kind.get(check.name) or (of_kind.get("law_is_target", {}) if check.name in LAWS else {})


def _most_telling_first() -> list[Check]:
    return sorted(EXACT_CHECKS, key=lambda check: check.name not in LAWS)


@cache
def pool(kind: str, only: str = "") -> Pool:
    """Return the candidate cases of each check with their number of runs, measured on a right subject of this kind.

    ``kind`` is a key of ``RIGHT``; ``only`` is the name of the one check to return, or "". Of cases that differ only in
    prompt and seed, one is kept.
    """
    subject = warmed_up(RIGHT[kind]())
    result: dict[str, dict[CaseName, int]] = {}
    for check in EXACT_CHECKS:
        if only not in {"", check.name} or not_applicable(subject, check) is not None:
            continue
        families: dict[CaseName, list[Case]] = defaultdict(list)
        for case in check.cases(subject):
            label, where = name_of_case(case)
            families[label, _OF_ONE_KIND.sub("", where)].append(case)
        chosen = [cases[place % len(cases)] for place, cases in enumerate(families.values())]
        runs = {}
        most = POOL if subject.intercepted else POOL_OF_OTHER_KINDS
        for case in spread(chosen, most if check.name in {*LAWS, ENDS} else POOL_OF_OTHERS):
            examination = None if beyond_reach(case) else _examination(case, subject)
            if examination is not None and not examination.unknown:
                runs[name_of_case(case)] = int(examination.figures.get("runs", 0))
        result[check.name] = runs
    forget_laws()
    return result


def _examination(case: Case, subject: Subject) -> Examination | None:
    """Return the result of a case with ``subject``, within ``POOL_RUNS`` runs; None if it raises."""
    conditions = in_quick(Conditions(edge=0.0))._replace(runs=POOL_RUNS)

    def examined() -> Examination:
        with libraries_replaced() if subject.intercepted or subject.programs else nullcontext():
            return case.examine(conditions)

    try:
        return patches.again(examined)
    except Exception:  # noqa: BLE001 - a bug may raise anything: the case says nothing of it
        return None


def plan_of(lines: Iterable[Mapping[str, Any]], pool_of: Callable[[str], Pool]) -> dict[str, dict[str, list[CaseName]]]:
    """Return the quick plan: for each kind of subject and each check, the cases to run, the most effective first.

    Cases are added until the plan refutes every bug that some case refutes, up to ``MOST_CASES`` for a check. ``lines``
    are the records that the command ``kills`` of this module writes. ``pool_of(kind)`` returns the candidate cases of
    the checks that no record tried.
    """
    refuted: dict[str, dict[str, dict[CaseName, set[str]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(set)))
    tried: dict[str, dict[str, dict[CaseName, int]]] = defaultdict(lambda: defaultdict(dict))
    for line in lines:
        for check, label, where, failed, runs in line["kills"]:
            if runs <= POOL_RUNS:
                tried[line["kind"]][check][label, where] = runs
                refuted[line["kind"]][check][label, where] |= {line["bug"]} if failed else set()
    plan = {}
    for kind, by_check in sorted(tried.items()):
        cases = {**pool_of(kind), **by_check}
        plan[kind] = {
            check: _ordered(_least(kind, check), cases[check], refuted[kind][check])
            for check in sorted(cases)
            if cases[check]
        }
    return plan


def _least(kind: str, check: str) -> int:
    if check not in LAWS:
        return LEAST_OF_OTHERS
    return LEAST_OF_ENGINES if kind == "engine" else LEAST_CASES


def _ordered(least: int, runs: Mapping[CaseName, int], refuted: Mapping[CaseName, set[str]]) -> list[CaseName]:
    """Return the cases of a check for a plan, chosen greedily: the next always refutes the most new bugs per run.

    Each bug is refuted by ``CASES_OF_A_BUG`` cases where possible. ``least`` is the smallest number of cases, ``runs``
    has the number of runs of each case, ``refuted`` the bugs that it refutes.
    """
    wanted = Counter(bug for bugs_here in refuted.values() for bug in bugs_here)
    left = {bug: min(number, CASES_OF_A_BUG) for bug, number in wanted.items()}
    chosen = list[CaseName]()

    def worth(case: CaseName) -> tuple[float, ...]:
        here = refuted.get(case, set())
        new = sum(left[bug] == min(wanted[bug], CASES_OF_A_BUG) for bug in here)
        more = sum(left[bug] > 0 for bug in here)
        return (
            new / (RUNS_OF_A_CASE + runs[case]),
            more / (RUNS_OF_A_CASE + runs[case]),
            min(runs[case], RUNS_OF_A_CASE),
        )

    while len(chosen) < min(MOST_CASES, len(runs)) and (any(left.values()) or len(chosen) < least):
        best = max((case for case in runs if case not in chosen), key=worth)
        chosen.append(best)
        for bug in refuted.get(best, set()):
            left[bug] = max(0, left[bug] - 1)
    return chosen


def as_toml(plan: Mapping[str, Mapping[str, Sequence[CaseName]]]) -> str:
    """Return a plan as the TOML file that ``specverify.run.quick`` reads.

    ``plan`` maps a kind of subject to check -> names of cases.
    """
    parts = ["# Written by: python -m specverify.trust.quick_power plan\n"]
    for kind, by_check in plan.items():
        parts.append(f"\n[{json.dumps(kind)}]\n")
        for check, names in by_check.items():
            rows = "".join(f"    [{json.dumps(label)}, {json.dumps(where)}],\n" for label, where in names)
            parts.append(f"{check} = [\n{rows}]\n")
    return "".join(parts)


def compared(bug: Bug, *, full: bool = True) -> dict[str, Any]:
    """Return the name and kind of a bug, and the check that refutes it under the quick and the full plan, as a record.

    The entries ``quick`` and ``full`` are "" if no check refutes it. The full plan runs only if the quick plan does not
    refute the bug; otherwise both entries are equal. If it must not run (``full`` False), its entry is None.
    """
    by_quick = first_refuting(bug.open(), quick=True)
    by_full = by_quick or (first_refuting(bug.open(), quick=False) if full else None)
    forget_laws()
    return {"bug": bug.name, "kind": bug.kind, "quick": by_quick, "full": by_full}


def first_refuting(subject: Subject, *, quick: bool) -> str:
    """Return the name of the first exact check that refutes a subject, or "".

    With ``quick`` the checks examine only the cases of the quick plan.
    """
    for verdict in verify_subject(subject, Checklist(EXACT_CHECKS, Conditions(edge=0.0), quick=quick)):
        if verdict.status is Status.REFUTED:
            return verdict.check
    return ""


def page_of(lines: Sequence[Mapping[str, Any]]) -> str:
    """Return the page ``docs/quick.md``: how many bugs of each kind the full and the quick plan refute.

    It also lists the bugs that the quick plan misses. ``lines`` are the records that the command ``compare`` of this
    module writes.
    """
    plans, by_kind = quick_plans(), defaultdict(list)
    for line in lines:
        by_kind[line["kind"]].append(line)
    rows = []
    for kind, mine in sorted(by_kind.items()):
        planned = sum(map(len, plans[kind].values())) if kind in plans else "no list"
        full, quick, unknown = _counted(mine)
        rows.append(f"| {kind} | {len(mine)} | {full} | {quick} | {unknown} | {planned} |")
    full, quick, unknown = _counted(lines)
    together = (
        f"The full plan refutes {full} of the {len(lines) - unknown} bugs that it was run on. It was not run on "
        f"{unknown} others, which quick does not refute. Quick refutes {quick} bugs: {1000 * quick // full / 10}% of "
        f"those that the full plan refutes, or {1000 * quick // (full + unknown) / 10}% if the full plan refutes the "
        "others too."
    )
    missed = [line for line in lines if line["full"] and not line["quick"]]
    listed = [f"* {line['bug']} ({line['kind']}), by `{line['full']}`" for line in missed]
    unsaid = [f"* {line['bug']} ({line['kind']})" for line in lines if line["full"] is None]
    return "\n".join(
        [
            HEAD,
            (
                "| kind of subject | bugs | refuted by full | of these, refuted by quick | not by quick, full not run "
                "| cases of quick |"
            ),
            "|---|---|---|---|---|---|",
            *rows,
            "",
            together,
            "",
            "Refuted by full (by the check that is named) and not by quick:",
            "",
            *(listed or ["* none"]),
            "",
            "Not refuted by quick, and the full plan was not run on them:",
            "",
            *(unsaid or ["* none"]),
            "",
        ]
    )


def _counted(lines: Sequence[Mapping[str, Any]]) -> tuple[int, int, int]:
    """Return three counts of bugs: refuted by the full plan, refuted by both plans, and without a full run.

    ``lines`` are the records that the command ``compare`` of this module writes.
    """
    full = [line for line in lines if line["full"]]
    return len(full), sum(bool(line["quick"]) for line in full), sum(line["full"] is None for line in lines)


HEAD = """# The quick plan

`quick=True` and `specverify verify --quick` examine a fixed list of cases, the *quick plan*, in place of all cases,
the *full plan*. A *case* is one situation in which one check examines a subject: options of the subject with small
models, a prompt and a horizon. This page states which bugs the quick plan misses ([what it
refutes](#what-it-refutes)), and how its cases were chosen.

The list is `specverify/run/quick.toml`. It has cases for each kind of subject and each check, is the same on every
machine, and does not depend on elapsed time. A *run* is one execution of the subject on one path of its random choices.
A case of more than 20 000 runs is skipped, and the verdict states this. After the first skipped case only cases of at
most 500 runs are examined: code that draws in a loop until a token is accepted has too many runs in most cases, and
each of them has many draws. A run of an engine decodes whole texts, so the limit for engines is 4 000 runs a case and
10 000 runs a check; after that only cases of at most 100 runs are examined. A case whose runs have more than 12 new
tokens may take fewer runs, in proportion, and is skipped if it seems to need more. With all uniforms at an end of their
range, 100 paths of an engine are examined at each end. If no case of the list can be enumerated for a subject, other
cases are tried until one can.

The law of the text is also compared in twenty scenarios (`QUICK_SCENARIOS`) and, for engines, in eight more
(`QUICK_OF_ENGINES`), in some batches and in some texts with an end that no list contains. An engine that draws little
or nothing decodes in many more pairs of models, alone and in batches, where it has few paths. For verifiers the law is
also compared in a round of their largest number of drafts, the last of which are random. For engines, one more case is
searched for random numbers that are used twice.

**How the list was chosen.** A program added one case after the other. In each step it took the case that refutes the
most remaining bugs per run. A bug remains until two cases of the list refute it (or one, if no second case does). The
bugs are in four groups:

* `planted:` planted bugs of the suite;
* `engine:` engines with one fault;
* `bare:` the faulty verifier of a planted bug of another kind, such as an engine, examined alone;
* `idiom:` wrong versions of the usual ways to write a verifier.

**Subjects without a list.** Kinds of subjects that are not in the table below, such as verifiers of trees, have no
list. For them the quick plan takes a third of the cases of each check, but at least two and at most sixteen, in this
order:

1. every variant (set of options) of the subject with one scenario of generic pmfs and three tokens;
2. the scenarios that refute most bugs of the kind `row`. A check that does not apply to that kind gets instead one
   scenario of each kind of pmfs, in turn with the smallest and with the largest vocabulary;
3. for the law of the text: cases at late drafts and deep levels, of variants that have scenarios of their own;
4. the other cases, at even distances.

The subcommands `kills`, `plan`, `compare` and `page` of `python -m specverify.trust.quick_power` compute the list and
this page.

## What it refutes

The kinds of subjects are a decoder or an algorithm of the library (`decoder`), an engine (`engine`), and a verifier
of one sequence that takes p and q (`row`) or logits (`logits`). The columns count bugs, except the last, which counts
the cases of the list. If quick did not refute a bug, the full plan was not always run on it, because it takes long;
the fifth column counts these bugs.
"""


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def _run(work: Callable[[Bug], Mapping[str, Any]], asked: argparse.Namespace) -> None:
    """Append the result ``work(bug)``, one line of JSON, for each selected bug that the file does not contain yet.

    ``asked`` are the parsed arguments, which select the bugs and name the file.
    """
    known, tries_all = {line["bug"] for line in _lines(asked.file)}, asked.what == "compare"
    part, parts = map(int, asked.part.split("/"))
    wanted = [bug for bug in bugs(asked.idioms) if asked.kind in {"", bug.kind} and (tries_all or bug.kind in RIGHT)]
    for bug in wanted[part::parts]:
        if bug.name not in known:
            line = json.dumps(work(bug))
            with asked.file.open("a", encoding="utf-8") as out:
                out.write(line + "\n")


def _line_of_kills(bug: Bug, only: str) -> dict[str, Any]:
    kills = [[kill.check, *kill.case, kill.refuted, kill.runs] for kill in kills_of(bug, only)]
    forget_laws()
    return {"bug": bug.name, "kind": bug.kind, "kills": kills}


def main() -> None:
    """Run the command line that the module describes."""
    parser = argparse.ArgumentParser(prog="python -m specverify.trust.quick_power", description=__doc__)
    parser.add_argument("what", choices=("kills", "plan", "compare", "page"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--kind", default="")
    parser.add_argument("--check", default="")
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--no-full", action="store_true", help="leave the full plan out where quick does not refute")
    parser.add_argument("--idioms", type=Path)
    asked = parser.parse_args()
    if asked.what == "plan":
        lines = [line for line in _lines(asked.file) if asked.kind in {"", line["kind"]}]
        plans: Mapping[str, Mapping[str, Sequence[CaseName]]] = plan_of(lines, partial(pool, only=asked.check))
        if asked.check:
            plans = {kind: {**quick_plans().get(kind, {}), **plan} for kind, plan in plans.items()}
        PLAN.write_text(as_toml({**quick_plans(), **plans}), "utf-8")
    elif asked.what == "page":
        PAGE.write_text(page_of(_lines(asked.file)), "utf-8")
    else:
        kills, both = partial(_line_of_kills, only=asked.check), partial(compared, full=not asked.no_full)
        _run(kills if asked.what == "kills" else both, asked)


if __name__ == "__main__":
    main()
