"""Tables of library calls that draw: what happens to each call while a run is enumerated, and tests of the claim.

A table is a text file. A line is a kind, a name and an expression, two spaces or more between them:

    answered  {}.choice   {}.choice(3, p=P)

``{}`` stands for each owner in turn that has such a call. The kinds are

* answered: the expression has an exact law, and a sample drawn by the library itself fits it;
* many: as answered, but it has more outcomes than are enumerated, so the law is known in part;
* refused: raises ``NeedsValue`` with file and line of the call, though the call really draws;
* harmless: nothing is drawn: the call yields no random number, or only sets the state of a generator;
* outside: its numbers come from the operating system; a replay gets others;
* absent: it cannot be called on this machine; the reason is in place of the expression.

``answered>=3.12`` is answered in Python 3.12 and later; earlier versions do not have the call.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from specverify.intercept.cpython.sandbox import moved
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.symbolic.deferred import Deferred, outcome_in
from specverify.laws.draws import Tape
from specverify.laws.enumeration import program_law
from specverify.statistics import FitVerdict, confirmed_fit, detectable_total_variation, samples_for, stage_level
from test_support.shares import is_thorough

KINDS = ("answered", "many", "refused", "harmless", "outside", "absent")
PLANNED, THOROUGH = 0.125, 0.02
"""Total variation that a sample must see, as planned for the page, and in a thorough run."""
ALARM, LINES, MISS = 1e-6, 600, 1e-3
"""False-alarm probability of all tables together, and the most answered lines that may share it."""
WORLDS, MOST_RUNS = 80, 64
"""In how many worlds a call is evaluated to see it differ: nothing seeds what the operating system draws, and values of
chances 3/4 and 1/4, the least even of its lines, are then all the same with a probability of 1e-10, below a line's
share. And in how many runs the law of a call must have been followed."""


class Line(NamedTuple):
    """One line of a table, for all its owners."""

    kind: str
    name: str
    call: str
    place: str
    """File and line, as a refusal names it."""
    owners: tuple[tuple[str, str], ...]
    """What stands for ``{}`` in the name and in the expression."""
    since: str
    """The version of Python that brought it, if not all have it."""

    def names(self) -> list[str]:
        """Return the name for every owner."""
        return [self.name.replace("{}", long) for long, _ in self.owners]

    def calls(self) -> list[str]:
        """Return the expression for every owner."""
        return [self.call.replace("{}", short) for _, short in self.owners]


class Library(NamedTuple):
    """The library under test: a table of its calls, and how to evaluate their expressions."""

    table: Path
    owners: Mapping[str, tuple[str, Any]]
    """For ``{}``: what stands in a name, what stands in an expression, and the object itself."""
    names: Mapping[str, Any]
    """What the expressions may use."""
    seeded: Callable[[int], AbstractContextManager[None]]
    """Puts every generator into a state of its own, and gives them back."""
    states: Callable[[], Any]
    """Returns the states of all generators."""
    drawing: Callable[[], set[str]]
    """Returns the names of all calls that draw, or might, in the library that is installed."""


def lines_of(library: Library) -> list[Line]:
    """Return the lines of a table; raises ``ValueError`` for one that cannot be read."""
    found = []
    for number, text in enumerate(library.table.read_text("utf-8").splitlines(), 1):
        if not text.strip() or text.startswith("#"):
            continue
        parts = re.split(r"\s{2,}", text.strip(), maxsplit=2)
        kind, _, since = parts[0].partition(">=")
        if len(parts) != 3 or kind not in KINDS:
            raise ValueError(f"{library.table.name}:{number} is {text!r}, expected a kind, a name and an expression")
        _, name, call = parts
        _, _, last = name.rpartition(".")
        known = [(long, short) for long, (short, owner) in library.owners.items() if hasattr(owner, last)]
        owners = tuple(known) if "{}" in name else (("", ""),)
        found.append(Line(kind, name, call, f"{library.table.name}:{number}", owners, since))
    return found


def of_this_python(line: Line) -> bool:
    """Return whether this version of Python has the call of a line."""
    return sys.version_info >= tuple(map(int, line.since.split("."))) if line.since else True


def missing(library: Library) -> list[str]:
    """Return the calls that draw without a line in the table, and the lines whose call does not exist."""
    drawing, lines = library.drawing(), [line for line in lines_of(library) if of_this_python(line)]
    listed = {name for line in lines for name in line.names()}
    unlisted = [f"{name} draws, or might, and stands in no line of {library.table.name}" for name in drawing - listed]
    gone = [f"{line.place} is of {line.name}, which is gone" for line in lines if not set(line.names()) & drawing]
    return sorted(unlisted) + gone


def evaluated(library: Library, line: Line, call: str) -> Any:
    """Evaluate an expression with the file name and line number of its line of the table."""
    return plain(eval(_compiled(line.place, call), {**library.names}))


@cache
def _compiled(place: str, call: str) -> Any:
    file, _, number = place.partition(":")
    return compile("\n" * (int(number) - 1) + call, file, "eval")


def plain(value: Any) -> Any:
    """Return a value that can be compared and counted: arrays and lists as tuples, tokens as integers."""
    value = outcome_in(value)
    value = value.value() if isinstance(value, Deferred) else value
    value = value.tolist() if hasattr(value, "tolist") and not isinstance(value, type) else value
    return tuple(map(plain, value)) if isinstance(value, (list, tuple)) else value


def law_of(library: Library, line: Line, call: str, runs: int = MOST_RUNS) -> dict[Any, float]:
    """Return the exact law of an expression, enumerated in at most ``runs`` runs; fails if nothing was drawn."""

    def program(draws: Any) -> Any:
        with library.seeded(0), answered_everywhere(draws):
            return evaluated(library, line, call)

    law = program_law(program, runs)
    assert law.decisions > 0, f"{line.place} asks for nothing"
    return dict(law.probabilities)


def unanswered_law(library: Library, line: Line, call: str) -> Any:
    """Run an expression once with its draws answered by a tape; return its value and the number of draws."""
    tape = _Asked()
    with library.seeded(0), answered_everywhere(tape):
        return evaluated(library, line, call), tape.number


class _Asked(Tape):
    def __init__(self) -> None:
        super().__init__(0)
        self.number = 0

    def categorical(self, pmf: Any, site: Any) -> int:
        self.number += 1
        return super().categorical(pmf, site)


def really(library: Library, line: Line, call: str) -> tuple[bool, bool]:
    """Return two bools: whether an expression's value depends on the seed, and whether it changes a generator."""
    values, changed = set(), False
    for world in range(WORLDS):
        with library.seeded(world):
            before = library.states()
            values.add(repr(evaluated(library, line, call)))
            changed = changed or library.states() != before
        if changed and len(values) > 1:
            break
    return len(values) > 1, changed


class Plan(NamedTuple):
    """A number of samples planned for a law, and the total variation that it detects."""

    samples: int
    detectable: float


def plan_of(law: Mapping[Any, float], detect: float = PLANNED) -> Plan:
    """Return the number of samples that detects a total variation of ``detect`` from a law."""
    level = stage_level(ALARM / LINES)
    samples = samples_for(law, detect, level, MISS / 2)
    return Plan(samples, detectable_total_variation(law, samples, level, MISS / 2))


def fits(library: Library, line: Line, call: str, law: Mapping[Any, float]) -> FitVerdict:
    """Return the verdict on a law of a sample that the library draws itself."""
    detect = THOROUGH if is_thorough() else PLANNED

    def sampler(number: int, seed: int) -> Counter[Any]:
        with library.seeded(seed % 2**32):
            return Counter(evaluated(library, line, call) for _ in range(number))

    samples = plan_of(law, detect).samples
    return confirmed_fit(sampler, law, samples=samples, false_alarm=ALARM / LINES, miss=MISS, seed=0).verdict


def given_other_bytes(library: Library, line: Line, call: str) -> set[str]:
    """Return the values of an expression in replays in which the operating system gives other random bytes."""
    values = set()
    for world in range(2):
        with moved(world):
            values.add(repr(unanswered_law(library, line, call)[0]))
    return values


def cases(library: Library, *kinds: str) -> Iterator[tuple[Line, str]]:
    """Yield the lines of some kinds with the expression of every owner."""
    for line in lines_of(library):
        if line.kind in kinds and of_this_python(line):
            yield from ((line, call) for call in line.calls())


def pairs_of(idioms: str) -> list[tuple[str, ...]]:
    """Return the pairs in a text: each line has a right expression, ``;;`` and a wrong twin with another law."""
    return [tuple(call.strip() for call in row.split(";;")) for row in idioms.strip().splitlines()]


def judged(library: Library, pair: tuple[str, ...], file: str) -> list[FitVerdict]:
    """Return the verdicts of samples of both expressions of a pair in ``file`` on the exact law of the first."""
    lines = [Line("answered", "", call, f"{file}:1", (("", ""),), "") for call in pair]
    law = law_of(library, lines[0], lines[0].call)
    return [fits(library, line, line.call, law) for line in lines]
