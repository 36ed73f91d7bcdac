"""Randomness that is used twice, named while foreign code is enumerated.

    with audited() as found:
        for path in paths(program): ...

``found`` then names (1) uniform numbers that decide twice and (2) draws made from one state of a generator. A law says
whether the output is right; the audit says what is shared, also where the law survives it.

**One uniform, two decisions.** A decision is a question to a uniform that was answered by a draw. One lookup may ask
several: a scan of a CDF, a bisection, a chain of branches over several lines, a comparison with all partial sums at
once. What they have in common is where the next threshold lies, given what an earlier question told. A scan that goes
on past its answer asks what it knows already, every time; a bisection, or a scan that stops, asks inside the interval
that is left, every time. Nothing that is one lookup does now this and now that. So a uniform is named when, between the
same two lines (or one line and itself) and after the same earlier answer, a threshold lay inside the interval that
answer left, and on this path or another one outside it. This is what happens when a rejected coin is looked up again
in a residual, and when one coin is broadcast against the acceptance ratios of several positions, and it tells both
from an inverse CDF without knowing what the numbers mean. Noise that raced (Gumbel, exponential) is named when it races
again with other weights, is compared with a number, or stands in two entries of one race; the second race of a
Gumbel top-k, whose weights are the old ones, is not.

**Two draws, one state.** Named when both were looked at: see ``streams`` for what a state is.

What it cannot see: a uniform recycled by its own remainder (``u / r`` after ``u < r``), which is a fresh uniform given
the answer and no fault; thresholds that are the same constants on every path, or on every path on one side; values that
are reused as values (``NeedsValue`` refuses them); anything shared between two blocks, which is why a whole decode is
one. Named although it may be meant so: a coupling by common noise, as drafters with shared Gumbel noise have it, one
number that is folded before it is compared, and one that is looked up in the CDFs of several rows at once, all of them
looked at and one kept. Whether that does harm, the law of the whole decode tells (``draws_are_independent``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

from specverify.intercept.caller import caller
from specverify.intercept.run import mode, mode_with
from specverify.reference import Site

ROUNDING = 1e-6
"""Thresholds as near as this are the same one, computed twice in float32."""


class Reuse(NamedTuple):
    """Randomness that was used twice."""

    what: str
    """Such as ``the uniform drawn by torch.rand at f.py:12``."""
    first: str
    """File and line of the first use."""
    second: str
    sentence: str


class Origin:
    """One state of a generator, and the draws that were made from it."""

    def __init__(self, state: Hashable = None) -> None:
        """Nothing has been drawn from it yet."""
        self.state = state
        self.looked_at: list[Draw] = []
        self.shared: dict[Hashable, Any] = {}
        """What draws that are made from it in the same way have in common."""


class Draw:
    """One draw: the call that made it and, if it is known, the state of the generator that it was made from."""

    __slots__ = ("origin", "site", "way")

    def __init__(self, site: Site, origin: Origin | None = None, way: Hashable = ()) -> None:
        """Draws from one ``origin`` in one ``way`` (function, weights, position) give the same."""
        self.site, self.origin, self.way = site, origin, way

    @property
    def name(self) -> str:
        """The call and its line."""
        return " at ".join(str(part) for part in self.site[:2])

    @property
    def place(self) -> str:
        """The line alone."""
        return str(self.site[1]) if len(self.site) > 1 else "unknown place"

    @property
    def made_before(self) -> bool:
        """Whether something was made for a draw like this one."""
        return self.origin is not None and self.way in self.origin.shared

    def shared(self, make: Callable[[], Any]) -> Any:
        """Return what was made for the first draw like this one."""
        if self.origin is None:
            return make()
        if self.way not in self.origin.shared:
            self.origin.shared[self.way] = make()
        return self.origin.shared[self.way]

    def look(self) -> str:
        """Say that somebody looks at it. Return why there is no answer, or nothing."""
        if self.origin is None or self.origin.looked_at == [self]:
            return ""
        others = [other for other in self.origin.looked_at if other is not self]
        if len(others) == len(self.origin.looked_at):
            self.origin.looked_at.append(self)
        for other in others:
            same = f"{other.name} draws twice from one state of its generator"
            two = f"{other.name} and {self.name} draw from one state of a generator"
            sentence = same if other.name == self.name else two
            _name(Reuse(f"the state {other.name} draws from", other.place, self.place, sentence))
            if other.way != self.way:
                return f"{sentence}, in different ways: how their outcomes hang together is not known here"
        return ""


class Cell(NamedTuple):
    """What an answer alone tells of a uniform: the number of the answer, and the interval it means."""

    answer: int
    low: float
    high: float


class AnsweredQuestion(NamedTuple):
    """A question that was answered by a draw."""

    draw: Draw
    place: str
    cell: Cell


class Audit:
    """What is known of the draws of several runs."""

    def __init__(self, *, speaks: bool = True) -> None:
        """Where it ``speaks`` a run is refused that could not be told; else that is noted, and the run goes on."""
        self.speaks = speaks
        self.found: list[Reuse] = []
        self.untold = False
        """Whether something could not be told, and no run was refused for it."""
        self.sides: dict[Hashable, set[bool]] = {}
        """Uniform, two places and the answer at the first -> whether thresholds at the second lay inside it."""
        self.ranks: dict[tuple[str, str], set[Hashable]] = {}
        """Where numbers were put in order, and where one is compared -> its places in the order."""

    def refusal(self, reason: str) -> str:
        """Return why a run is refused that could not be told for this reason."""
        self.untold = True
        return reason if self.speaks else ""


@contextmanager
def audited() -> Iterator[list[Reuse]]:
    """Collect what is used twice inside the block, each once; evidence of several runs is put together."""
    with _auditing(Audit()) as audit:
        yield audit.found


def overheard() -> AbstractContextManager[Audit]:
    """Collect the same inside the block without a word: whatever runs there does what it does without an audit."""
    return _auditing(Audit(speaks=False))


@contextmanager
def _auditing(audit: Audit) -> Iterator[Audit]:
    with mode_with(audit=audit):
        yield audit


def place() -> str:
    """Return the line of the foreign code, if somebody wants to know."""
    return "" if mode().audit is None else caller()


def asked(
    questions: list[AnsweredQuestion], draw: Draw, thresholds: Sequence[float], cell: Cell | None, where: str = ""
) -> None:
    """Note a question to a uniform at ``where``, or here; ``cell`` is None where the answer was known already."""
    audit: Audit | None = mode().audit
    if audit is None:
        return
    where = where or caller()
    inner = [threshold for threshold in thresholds if ROUNDING < threshold < 1 - ROUNDING]
    for earlier in questions:
        if earlier.draw is draw:
            key = (draw.name, earlier.place, where, earlier.cell.answer)
            sides = audit.sides.setdefault(key, set())
            sides.update(_sides(earlier.cell, inner, drawn=cell is not None))
            if len(sides) == 2:
                _decides_twice(draw, earlier.place, where)
    if cell is not None and inner:
        questions.append(AnsweredQuestion(draw, where, cell))


def asked_together(names: tuple[str, ...], before: Sequence[bool], *, others: bool, drawn: bool, where: str) -> str:
    """Note a comparison of a quantity that is made of several draws. Return why it is not told, or nothing.

    ``before`` are the earlier answers about the same quantity, ``others`` says that its draws have answered about
    something else. What one uniform decides is told by intervals, and these have none: where it would be named if the
    quantity were one uniform, and where something else hangs on one of them, nothing is said.
    """
    audit: Audit | None = mode().audit
    if audit is None:
        return ""
    sides = [audit.sides.setdefault((names, where or caller(), answer), set()) for answer in before]
    for each in sides:
        each.add(drawn)
    if others or any(len(each) == 2 for each in sides):
        return audit.refusal(
            "random numbers decide together, and again: whether that is one decision is not told of several"
        )
    return ""


def _sides(cell: Cell, thresholds: Sequence[float], *, drawn: bool) -> Iterator[bool]:
    """Yield True for a threshold inside the cell that took a draw, False for one outside, nothing for its edges."""
    for threshold in thresholds:
        if threshold < cell.low - ROUNDING or threshold > cell.high + ROUNDING:
            yield False
        elif drawn and cell.low + ROUNDING < threshold < cell.high - ROUNDING:
            yield True


class Raced(NamedTuple):
    """Where a uniform took part in a race, and with which weight (its logarithm)."""

    place: str
    weight: float


class Racer(NamedTuple):
    """A uniform in a race: what it has decided before, and its log weight now."""

    draw: Draw
    questions: Sequence[AnsweredQuestion]
    before: Raced | None
    weight: float


def raced(racers: Sequence[Racer], where: str = "") -> None:
    """Note a race at ``where``, or here."""
    if mode().audit is None:
        return
    where, entries = where or caller(), [id(racer.questions) for racer in racers]
    shifts = [racer.weight - racer.before.weight for racer in racers if racer.before and racer.weight > -math.inf]
    reweighted = bool(shifts) and not max(shifts) - min(shifts) < ROUNDING
    for racer in racers:
        if entries.count(id(racer.questions)) > 1:
            _decides_twice(racer.draw, where, where)
        if racer.before and reweighted:
            _decides_twice(racer.draw, racer.before.place, where)
        if racer.questions and racer.questions[0].draw is racer.draw:
            _decides_twice(racer.draw, racer.questions[0].place, where)


def compared_after(draw: Draw, race: Raced) -> None:
    """Note that a uniform is compared with a number after it raced."""
    if mode().audit is not None:
        _decides_twice(draw, race.place, caller())


def placed(race: Raced, rank: Hashable, where: str = "") -> str:
    """Note that a number whose place in an order is known is compared at ``where``. Return why it is not told, or "".

    The largest of several is one number however they came, and so is their median: the order tells nothing of it. One
    that is now the largest and now the smallest has decided before, by its place.
    """
    audit: Audit | None = mode().audit
    if audit is None:
        return ""
    ranks = audit.ranks.setdefault((race.place, where or caller()), set())
    ranks.add(rank)
    several = "a random number is compared with others and then with a number, now as a larger one and now as a smaller"
    return audit.refusal(several) if len(ranks) > 1 else ""


def _decides_twice(draw: Draw, first: str, second: str) -> None:
    what = f"the uniform drawn by {draw.name}"
    again = f"at {first} and again at {second}" if first != second else f"more than one thing at {first}"
    _name(Reuse(what, first, second, f"{what} decides {again}"))


def _name(reuse: Reuse) -> None:
    audit: Audit | None = mode().audit
    if audit is not None and reuse not in audit.found:
        audit.found.append(reuse)
