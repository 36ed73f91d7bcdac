"""Detect randomness that is used twice, while the paths of foreign code are enumerated.

    with audited() as found:
        for path in paths(program): ...

``found`` then lists (1) uniform numbers that decide twice and (2) draws made from the same state of a generator. The
law of the output shows whether the output is right; the audit shows shared randomness even if the law is right.

**One uniform, two decisions.** A decision is a comparison of a symbolic uniform number with thresholds; its outcome
restricts the number to an interval. One lookup in a CDF may need several comparisons: a scan, a bisection, a chain of
branches over several lines. The audit must tell such a lookup from two separate decisions. In one lookup, an earlier
outcome determines where the next thresholds lie. A scan that continues past its result always compares with thresholds
outside the remaining interval; a bisection, or a scan that stops, always with thresholds inside. No lookup does both.
So the audit compares paths on which the same two lines (or one line twice) compare the uniform, after the same earlier
outcome. It reports the uniform if the second threshold lay inside the remaining interval on one path and outside on
another. Two examples are a uniform that rejects a draft and is looked up again in the residual, and one uniform that is
broadcast against the acceptance ratios of several positions.

Noise of a race (an argmax with Gumbel or exponential noise) is reported if it is used in a second race with other
weights, is compared with a number, or is in two entries of one race. The second race of a Gumbel top-k, with the same
weights, is not reported.

**Two draws, one state.** Two draws from the same state of a generator are reported if the program reads both outcomes;
``streams`` defines a state.

Not detected:

* a uniform recycled by its own remainder (``u / r`` after ``u < r``), which is a fresh uniform given the outcome and no
  fault;
* thresholds that on every path lie inside the remaining interval, or on every path outside;
* a threshold that was compared with the uniform before;
* random numbers that the program returns or stores as plain values (the enumeration refuses such a run with
  ``NeedsValue``);
* randomness that is shared between two intercepted ``with`` blocks; so put a whole decode in one block.

Reported although it may be intended: common noise, as in drafters with shared Gumbel noise; a number that is folded
(``abs``) before it is compared; and a number that is looked up in the CDFs of several rows at once, of which one result
is used. The check ``draws_are_independent`` compares the law of the whole decode to show whether the reuse does harm.
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
"""Two thresholds that differ by at most this count as one threshold, computed twice in float32."""


class Reuse(NamedTuple):
    """One reuse of randomness: two lines use the same random number or the same state of a generator.

    ``first`` and ``second`` are file and line of the two uses, and ``sentence`` describes the reuse. ``noise`` states
    whether the number is the noise of a race, which a drafter may share with the target on purpose.
    """

    what: str
    """The reused number, such as ``the uniform drawn by torch.rand at f.py:12``."""
    first: str
    """File and line of the first use."""
    second: str
    sentence: str
    noise: bool = False


class DrawRecord(NamedTuple):
    """What later draws and comparisons need of a ``Draw``: its call and line, the line alone, and its ``source``.

    Each draw has one record, which identifies it. A record has no reference to the state of the generator, as the draw
    has: so nothing refers to itself, and the memory of a run is free as soon as the run ends.
    """

    name: str
    place: str
    source: Hashable


class Origin:
    """One state of a random generator, with the draws that were made from it."""

    def __init__(self, state: Hashable = None) -> None:
        """Start without draws from the generator state ``state``; None stands for an unknown state."""
        self.state = state
        self.looked_at: list[DrawRecord] = []
        self.shared: dict[Hashable, Any] = {}
        """Way of drawing -> the value of all draws made from this state in that way."""
        self.lookups: dict[Hashable, list[tuple[Any, int]]] = {}
        """Numbers of the stream -> the outcomes computed from them that were read, as pairs (pmf, outcome)."""


class Draw:
    """One draw: its site (call and line) and, if known, the state of the generator before it (``origin``)."""

    __slots__ = ("_record", "origin", "races", "site", "source", "way")

    def __init__(
        self,
        site: Site,
        origin: Origin | None = None,
        way: Hashable = (),
        source: Hashable | None = None,
        *,
        races: bool = False,
    ) -> None:
        """Store the call that draws (``site``) and, if known, the generator state from which it draws (``origin``).

        ``way`` identifies how the generator is used: the drawing function, its weights, and the position in its result.
        Draws with the same ``origin`` and ``way`` return the same value. Some functions compute an index from a number
        of the generator, as ``choice`` does from one uniform. Then ``source`` is the ``way`` of the function that
        returns this number itself, such as ``random``. None stands for ``way``. With ``races`` the outcome is the
        winner of a race, and ``source`` identifies the noise that races.
        """
        self.site, self.origin, self.way, self.races = site, origin, way, races
        self.source = way if source is None else source
        self._record: DrawRecord | None = None

    @property
    def record(self) -> DrawRecord:
        """Return the record that identifies this draw."""
        if self._record is None:
            self._record = DrawRecord(self.name, self.place, self.source)
        return self._record

    @property
    def looks_up(self) -> bool:
        """Return whether the outcome is computed from numbers that another draw of the run may use too.

        Examples are a weighted ``choice``, which looks up one uniform number in a CDF, and ``torch.multinomial``, which
        races exponential noise.
        """
        return self.origin is not None and self.source != self.way

    @property
    def name(self) -> str:
        """Return the name of the drawing function and its line, such as ``torch.rand at f.py:12``."""
        return " at ".join(str(part) for part in self.site[:2])

    @property
    def place(self) -> str:
        """Return file and line of the call that drew."""
        return str(self.site[1]) if len(self.site) > 1 else "unknown place"

    @property
    def made_before(self) -> bool:
        """Return whether this draw has the value of an earlier draw, because both read the same generator state alike.

        The result is also True if the earlier draw computed its outcome from the number that this draw returns.
        """
        origin = self.origin
        return origin is not None and (self.way in origin.shared or self.way in origin.lookups)

    def shared(self, make: Callable[[], Any]) -> Any:
        """Return the value of this draw, which all draws from the same generator state in the same way have in common.

        The first of them computes it by ``make()``. If the generator state is not known, ``make()`` is called every
        time.
        """
        if self.origin is None:
            return make()
        if self.way not in self.origin.shared:
            self.origin.shared[self.way] = make()
        return self.origin.shared[self.way]

    def look(self) -> str:
        """Record that the program reads the outcome of this draw; return "", or the reason why the run must be refused.

        If the program has read another draw from the same generator state, this reuse is reported to the audit. The run
        must be refused if this other draw has another ``source``: the two draws then use different numbers of the
        generator, and how their outcomes depend on each other is unknown.
        """
        if self.origin is None:
            return ""
        others = [other for other in self.origin.looked_at if other is not self.record]
        if len(others) == len(self.origin.looked_at):
            self.origin.looked_at.append(self.record)
        for other in others:
            same = f"{other.name} draws twice from one state of its generator"
            two = f"{other.name} and {self.name} draw from one state of a generator"
            sentence = same if other.name == self.name else two
            _name(Reuse(f"the state {other.name} draws from", other.place, self.place, sentence))
            if other.source != self.source:
                return f"{sentence}, in different ways: how their outcomes hang together is not known here"
        return ""


class Cell(NamedTuple):
    """The interval from ``low`` to ``high`` in which a uniform number lies after a comparison with thresholds.

    ``answer`` is the result of the comparison: how many of the thresholds are at or below the number.
    """

    answer: int
    low: float
    high: float


class AnsweredQuestion(NamedTuple):
    """A comparison of a symbolic number, with its result.

    ``draw`` is the draw of the number, ``place`` file and line of the comparison, and ``cell`` the interval in which
    the number lies afterwards.
    """

    draw: DrawRecord
    place: str
    cell: Cell


class Audit:
    """The record of an audit: the reuse of randomness that it found, and the comparisons on which this result rests."""

    def __init__(self, *, refuses: bool = True) -> None:
        """Start an empty record.

        ``refuses`` states what happens if reuse cannot be decided. True: the run is refused. False: ``undecided`` is
        set and the run continues.
        """
        self.refuses = refuses
        self.found: list[Reuse] = []
        self.undecided = False
        """Whether reuse could not be decided in some run."""
        self.sides: dict[Hashable, set[bool]] = {}
        """(Uniform, line, later line, first answer) -> whether later thresholds lay in the interval that it left."""
        self.ranks: dict[tuple[str, str], set[Hashable]] = {}
        """(Line of a sort, line of a comparison) -> ranks in the order of the numbers that were compared."""

    def refusal(self, reason: str) -> str:
        """Record in ``undecided`` that the audit cannot decide whether randomness is reused, for the given ``reason``.

        Returns ``reason`` if this audit refuses such a run (the caller then raises the refusal), else "".
        """
        self.undecided = True
        return reason if self.refuses else ""


@contextmanager
def audited() -> Iterator[list[Reuse]]:
    """Context manager that yields a list, to which each reuse of randomness in the ``with`` block is appended once.

    The evidence of all runs in the block is combined.
    """
    with _auditing(Audit()) as audit:
        yield audit.found


def side_audit() -> AbstractContextManager[Audit]:
    """Return a context manager that searches the runs in its block for random numbers that are used twice.

    It yields the ``Audit``, which has the findings. A run is not refused if it cannot be decided whether a number is
    used twice.
    """
    return _auditing(Audit(refuses=False))


@contextmanager
def _auditing(audit: Audit) -> Iterator[Audit]:
    with mode_with(audit=audit):
        yield audit


def place() -> str:
    """Return file and line of the foreign code that is running; "" if no audit is active."""
    return "" if mode().audit is None else caller()


def record_comparison(
    questions: list[AnsweredQuestion], draw: Draw, thresholds: Sequence[float], cell: Cell | None, where: str = ""
) -> None:
    """Record a comparison of the uniform of ``draw`` with ``thresholds``; report a uniform that decides twice.

    ``questions`` are the earlier comparisons of the same uniform. ``cell`` is the interval in which the uniform lies
    after the new comparison. It is None if the earlier comparisons already determine the result. The new comparison is
    appended to ``questions``, with two exceptions: if ``cell`` is None, and if every threshold is 0, 1 or an end of an
    earlier interval. ``where`` is the line, by default the current one.
    """
    audit: Audit | None = mode().audit
    if audit is None:
        return
    where = where or caller()
    asked = [earlier for earlier in questions if earlier.draw is draw.record]
    edges = [edge for earlier in asked for edge in (earlier.cell.low, earlier.cell.high)]
    inner = [
        threshold
        for threshold in thresholds
        if ROUNDING < threshold < 1 - ROUNDING and not any(abs(threshold - edge) <= ROUNDING for edge in edges)
    ]  # a threshold that was asked before repeats a question: (c > u).any() in front of (c > u).argmax()
    for earlier in asked:
        key = (draw.name, earlier.place, where, earlier.cell.answer)
        sides = audit.sides.setdefault(key, set())
        sides.update(_sides(earlier.cell, inner, drawn=cell is not None))
        if len(sides) == 2:
            _decides_twice(draw, earlier.place, where)
    if cell is not None and inner:
        questions.append(AnsweredQuestion(draw.record, where, cell))


def asked_together(names: tuple[str, ...], before: Sequence[bool], *, others: bool, drawn: bool, place: str) -> str:
    """Record a comparison of a quantity that is made of several draws, such as the sum of two uniforms.

    The audit cannot report reuse here, but may find that it cannot decide whether there is any.

    Args:
        names: Names of the draws.
        before: Outcomes of earlier comparisons of the same quantity (True: it was below the bound).
        others: Whether some of the draws were also compared alone, or in another quantity.
        drawn: Whether the new outcome is drawn, because earlier ones do not determine it.
        place: Line of the comparison.

    Returns:
        The reason for a refusal if it cannot be decided whether randomness is reused, else "".
    """
    audit: Audit | None = mode().audit
    if audit is None:
        return ""
    sides = [audit.sides.setdefault((names, place or caller(), answer), set()) for answer in before]
    for each in sides:
        each.add(drawn)
    if others or any(len(each) == 2 for each in sides):
        return audit.refusal(
            "random numbers decide jointly more than once: whether that is one decision cannot be determined"
        )
    return ""


def _sides(cell: Cell, thresholds: Sequence[float], *, drawn: bool) -> Iterator[bool]:
    """Yield True for each of ``thresholds`` inside the interval ``cell``, and False for each one outside.

    ``cell`` is the interval to which an earlier comparison restricted a uniform, and ``thresholds`` are those of a new
    comparison of the same uniform. The caller collects the values for each pair of program lines, over all paths. Only
    False, or only True, is one decision: a repeated comparison, or a search in cumulated probabilities. Both values
    mean that the uniform decides twice, which is reported as reuse.

    No value is yielded in two cases:

    * The threshold is at an end of the interval: rounding decides on which side it lies.
    * The threshold is inside, but ``drawn`` is False: the result of the new comparison already follows from earlier
      ones.
    """
    for threshold in thresholds:
        if threshold < cell.low - ROUNDING or threshold > cell.high + ROUNDING:
            yield False
        elif drawn and cell.low + ROUNDING < threshold < cell.high - ROUNDING:
            yield True


class Raced(NamedTuple):
    """An earlier race (argmax or argmin of noisy scores) in which a uniform number took part.

    One entry of the race was computed from this number. ``place`` is the program line of the race. ``weight`` is a
    log-weight: the logarithm of the rate of the entry's exponential clock. The entry whose clock rings first wins the
    race.
    """

    place: str
    weight: float


class Racer(NamedTuple):
    """One entry of a race (argmax or argmin of noisy scores), which is a function of one uniform number.

    ``draw`` is the draw of this number, and ``questions`` are the earlier comparisons of this number. ``before`` is the
    last race in which this number took part, or None. ``weight`` is a log-weight: the logarithm of the rate of the
    entry's exponential clock. The entry whose clock rings first wins the race.
    """

    draw: Draw
    questions: Sequence[AnsweredQuestion]
    before: Raced | None
    weight: float


def raced(racers: Sequence[Racer], where: str = "") -> None:
    """Record that ``racers`` take part in a race (argmax or argmin of noisy scores); report noise that decides twice.

    A uniform is reported in three cases: it is in two entries of the race, it was compared with a number before, or it
    was in an earlier race in which the weights had other ratios. ``where`` is the line, by default the current one.
    """
    if mode().audit is None:
        return
    where, entries = where or caller(), [id(racer.questions) for racer in racers]
    shifts = [racer.weight - racer.before.weight for racer in racers if racer.before and racer.weight > -math.inf]
    reweighted = bool(shifts) and not max(shifts) - min(shifts) < ROUNDING
    for racer in racers:
        if entries.count(id(racer.questions)) > 1:
            _decides_twice(racer.draw, where, where, noise=True)
        if racer.before and reweighted:
            _decides_twice(racer.draw, racer.before.place, where, noise=True)
        if racer.questions and racer.questions[0].draw is racer.draw.record:
            _decides_twice(racer.draw, racer.questions[0].place, where, noise=True)


def compared_after(draw: Draw, race: Raced) -> None:
    """Report that the uniform of ``draw`` decides twice: in ``race``, and now in a comparison with a number."""
    if mode().audit is not None:
        _decides_twice(draw, race.place, caller(), noise=True)


def placed(race: Raced, rank: Hashable, where: str = "") -> str:
    """Record that a number which took part in a race is compared with a plain number.

    ``race`` is this earlier race (an argmax or argmin of noisy scores). ``rank`` is the rank of the number among the
    entries of the race, and ``where`` the line that compares, by default the current one. The result is "", unless this
    line compares numbers of different ranks on different paths. In that case the audit cannot decide whether randomness
    is reused, and the result is the reason for a refusal.
    """
    audit: Audit | None = mode().audit
    if audit is None:
        return ""
    ranks = audit.ranks.setdefault((race.place, where or caller()), set())
    ranks.add(rank)
    several = "a random number is compared with others and then with a number, now as a larger one and now as a smaller"
    return audit.refusal(several) if len(ranks) > 1 else ""


def _decides_twice(draw: Draw, first: str, second: str, *, noise: bool = False) -> None:
    what = f"the uniform drawn by {draw.name}"
    again = f"at {first} and again at {second}" if first != second else f"more than one thing at {first}"
    _name(Reuse(what, first, second, f"{what} decides {again}", noise))


def _name(reuse: Reuse) -> None:
    audit: Audit | None = mode().audit
    if audit is not None and reuse not in audit.found:
        audit.found.append(reuse)
