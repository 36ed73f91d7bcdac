"""Write the page of coupled runs from the lines of the survey.

    python -m tools.pages.coupled_runs_page FILE docs/coupled-runs.md

FILE is what ``tools.surveys.coupled_runs`` wrote.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from textwrap import shorten
from typing import Any, NamedTuple

from specverify.checks.moved_replays import MISS
from tools.surveys.coupled_runs import GROUPS, read

DIFFERENCES = ("run as it is and examined with the same", "a plain run with the random numbers of an enumerated path")
WORDS = {
    "mutants": "planted bugs and the same subjects without them: verifiers, trees, batches, engines",
    "huggingface": "settings of transformers (`hf:all`)",
    "idioms": "idioms of torch, NumPy and `random`, each beside a wrong twin",
    "jax_idioms": "idioms of JAX, eager and under `jit`, each beside a wrong twin",
    "sources": "engines that toss one coin, from each source of randomness",
    "released": "code that papers released",
    "shipped": "verifiers as their projects ship them",
}
HEAD = """# Coupled runs of every group of subjects

This page shows by tests that interception does not change the programs of this project. The check
`program_is_its_draws` makes two kinds of tests ([soundness](soundness.md#5-the-program-that-was-run-is-the-program)):

* A *pair* of *coupled runs*: the program runs without interception, and its random numbers are recorded. Then it runs
  under interception with the same numbers. The results must be equal.
* A *fed run* goes the other way: a path of the enumeration is sampled, and the program runs without interception on
  numbers of that path. The result must be that of the path.

A difference makes the exact checks of its subject UNKNOWN. The page has the results for all groups of subjects, the
cost, and a test of the power of these runs. `nox -s pages -- coupled-runs` writes it. The columns of the table:

* *subjects*: the number of subjects. *Surveyed*: how many of them were examined. *With pairs*: how many have pairs. Two
  kinds of subjects have none: decoders that draw only through `draws`, an object that specverify passes to them, and
  need no interception; and subjects that are UNKNOWN or unusable before the pairs run ([list](#without-a-decision)).
* *pairs*, *fed*: the numbers of pairs and of fed runs with equal results. *Ties*: the number of pairs with different
  results that rounding may explain.
* *noticed above*: the power of the pairs, for the median subject; a small number is good. If interception changes the
  result of a run with a probability above this number, then the pairs miss the change with probability at most {miss}.
* *differences*: the number of subjects with a pair or a fed run that differs.

Engines of other packages are examined where they are installed (`nox -s engines`): the same check runs before their
exact checks.

| group | subjects | surveyed | with pairs | pairs | fed | ties | noticed above | differences |
|---|---:|---:|---:|---:|---:|---:|---:|---:|
"""

STATE = """
The code of specverify changed during this survey. Afterwards 135 subjects, from all groups, were examined again; the
results were equal.
"""

NUMBERS = """
## Numbers of runs, and cost

The table has the numbers of runs for one subject. A *replay* is a second run with the same outcomes of all draws, in
which the generators have another state ([soundness](soundness.md#1-every-draw-was-seen)).

| subject | coupled runs | fed runs |
|---|---|---|
| verifier | 4 in each short scenario, about 540 in all | 1 in each short scenario, about 135 in all |
| engine, with speculation and without | in each setting one for 20 runs of its replays and its enumeration, at least 10 and at most 70; at least 24 in all settings | a third of the coupled runs; every path if there are no more than that |
| engine with 20 replays (`check_engine(make)`, transformers' table) | 10 in each setting | 4 in each |
| engine that draws through `draws` by name only | 3 in each setting, because no rule of interception is used | 1 in each |
| single calls of a verifier (`cases=`) | 40 for each of three calls with a small vocabulary, 2 for a call with the vocabulary of `cases` | with a small vocabulary up to 24 of the paths of each call; 1 with the vocabulary of `cases` |

A pair has two runs, so one pair for 20 runs of an engine adds a tenth to its number of runs. The number of runs of the
enumeration is estimated in advance: it is the mean of 1 / P(path) over the replayed paths.

Coupled and fed runs add at most 15 % to the CPU time of the exact checks:

| subject | CPU time of the exact checks | added |
|---|---:|---:|
| row sampler in NumPy | 5.2 s | 10 % |
| row sampler in torch | 14.5 s | 9 % |
| tree of drafts without replacement (`first-child-alone` without the bug) | 21.6 s | 2 % |
| batch of rows (`answer-of-the-last-call` without the bug) | 7.5 s | 7 % |
| `hf:assisted` | 46.5 s | 11 % |
| `hf:all/assisted/greedy` | 1.1 s | 11 % |
| `hf:all/prompt-lookup/greedy` | 0.8 s | 11 % |
| engine with draws of NumPy (`inclusive-coin` without the bug) | 1.1 s | 13 % |
| engine that tosses one coin of `random` | 0.18 s | 11 % |
| engine that draws by name (`only-last-token-stops` without the bug) | 0.23 s | 2 % |

## Planted faults of interception

This test shows which faults of interception the runs find. One rule of interception is made wrong at a time, and no
other check is active. Examples of wrong rules: the wrong side of a bound, a lost constraint, a wrong winner of a race,
a dtype that is not rounded, a generator that is not advanced, a result that is cached too long. *Number* counts the
wrong rules. The last two columns count those that the runs find:

| wrong rules | number | found by coupled runs | found by fed runs |
|---|---:|---:|---:|
| of numbers, rows and outcomes (`engine_tests/intercept/test_coupled_runs.py`, `test_fed_runs.py`) | 63 | 63 | 40; the others change only probabilities |
| of a real vocabulary (`test_coupled_at_size.py`) | 15 | 15 | 6; noise vectors are not fed |
| of JAX (`engine_tests/in_jax/test_coupled_rules_of_jax.py`) | 9 | 9 | 0; numbers of JAX are not fed |
| of tokens that are never read (`engine_tests/checks/test_coupled_open_ends.py`) | 5 | 5 | not run |

Twenty of these faults were written after the check was finished. At first the runs found 19 of the twenty. The other one
concerns the set of tokens that remain possible after two comparisons of one outcome of a real vocabulary. Coupled runs
now compare this set too.

A second test has 48 programs that draw in unusual ways, each with a wrong twin
(`engine_tests/soundness/test_stranger_coins.py`). All programs hold, and all twins are refuted. Some generators are
spawned, copied, forked, seeded by a draw, or reset to an earlier state. Some draws are in executors or coroutines, or
have no effect. Other programs have rejection loops, clocks or caches.
"""  # noqa: E501 - rows of tables

WITHOUT = """
## Without a decision

For these subjects the coupled runs have no result. The reasons are cut after 200 characters; subjects with the same
reason share a line.
"""

STATUSES = {
    "unusable": "The subject raised an error",
    "refused": "The library does not support the setting, and raised an error",
    "unknown": "A draw could not be answered, or the program depends on more than its draws",
    "refuted": "Two runs with the same outcomes of all draws gave different tokens",
    "error": "The subject is not installed here",
}

MENDED = """
Faults of specverify that earlier surveys found, all fixed since:

* A call that draws an empty array was counted as a draw (`torch.rand_like` in LayerSkip's strategy).
* An error of a library was counted as a difference because its message differs under interception (`q-of-the-root`).
* A last token that the program never reads is not drawn: a symbolic integer represents it, with its law. No pair
  compared this law or the operations on the symbolic integer.
* The interval of a geometric number with success probability 1 was NaN (`coins_of_numpy/geometric/right`).
* A boolean of torch that the program had already read was taken as True by `~`, `&`, `|` and `^` (Hierarchical SD,
  three forms).
"""


class Row(NamedTuple):
    """What coupled runs came to in one group."""

    group: str
    lines: Sequence[Mapping[str, Any]]
    subjects: int

    def total(self, figure: str) -> int:
        """Return the sum of a figure over the subjects."""
        return sum(line["figures"].get(figure, 0) for line in self.lines)

    @property
    def pairs(self) -> list[int]:
        """The numbers of coupled runs of the subjects that have some."""
        return [line["figures"]["coupled_runs"] for line in self.lines if line["figures"].get("coupled_runs")]

    @property
    def differences(self) -> list[Mapping[str, Any]]:
        """The subjects in which two runs differ."""
        return [line for line in self.lines if any(words in line["statement"] for words in DIFFERENCES)]

    def written(self) -> str:
        """Return the row of the table."""
        noticed = f"{1 - MISS ** (1 / median(self.pairs)):.3f}" if self.pairs else ""
        totals = (self.total(figure) for figure in ("coupled_runs", "fed_runs", "coupled_ties"))
        cells = (WORDS[self.group], self.subjects, len(self.lines), len(self.pairs), *totals, noticed)
        return f"| {' | '.join(map(str, (*cells, len(self.differences))))} |"


def page(lines: Iterable[Mapping[str, Any]], subjects: Mapping[str, int]) -> str:
    """Return the page.

    Parameters
    ----------
    lines
        Those of the survey.
    subjects
        The number of subjects by group.
    """
    every = list(lines)
    rows = [Row(group, [line for line in every if line["group"] == group], subjects[group]) for group in WORDS]
    text = HEAD.format(miss=f"{MISS:g}") + "".join(f"{row.written()}\n" for row in rows)
    sampled = [row for row in rows if len(row.lines) < row.subjects]
    text += STATE
    if sampled:
        text += "\nWhere fewer subjects are surveyed than there are, the survey was ended before the others.\n"
    differences = [line for row in rows for line in row.differences]
    text += "\n## Differences\n\n"
    text += "".join(f"* {_name(line)}: {_shown(line)}\n" for line in differences) or "None.\n"
    text += MENDED + NUMBERS
    without = [line for row in rows for line in row.lines if line not in differences and _undecided(line)]
    return text + WITHOUT + "".join(_section(status, without) for status in STATUSES)


def _section(status: str, without: Iterable[Mapping[str, Any]]) -> str:
    """Return the subjects of a status, grouped by reason; empty if there are none."""
    reasons: dict[str, list[str]] = {}
    for line in without:
        if line["status"] == status:
            reasons.setdefault(_shown(line), []).append(_name(line))
    if not reasons:
        return ""
    items = "".join(f"* {', '.join(names)}: {reason}\n" for reason, names in reasons.items())
    return f"\n### {STATUSES[status]} (*{status}*)\n\n{items}"


def _undecided(line: Mapping[str, Any]) -> bool:
    return line["status"] not in {"holds", "not applicable"}


def _name(line: Mapping[str, Any]) -> str:
    return f"`{line['subject'].replace('`', '')}`"


def _shown(line: Mapping[str, Any]) -> str:
    reason = shorten(line["statement"].partition("/tmp/")[0], 200, placeholder=" ...")
    return reason.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("page", type=Path)
    given = parser.parse_args()
    counted = {group: sum(1 for _ in GROUPS[group]()) for group in WORDS}
    given.page.write_text(page(read(given.file).values(), counted), encoding="utf-8")
