"""Random values that have not been looked at yet, and what may be asked of them without knowing their value.

A ``Uniform`` is never given a value. It may be compared with numbers: each comparison is a coin whose probability is
the share of the interval the uniform is still known to lie in, and narrows that interval, so that comparing the same
uniform twice gives the right, correlated law. A ``Deferred`` is an outcome that is drawn when somebody looks at it.
Nothing that is not looked at is ever branched on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from reference import Draws, Site
from specverify import rounding
from specverify.intercept import audit, block
from specverify.intercept.audit import Cell, Draw, Question, Raced


class NeedsValue(Exception):  # noqa: N818 - reads as the sentence it is
    """The code asked for the value of a continuous random number, or drew one that cannot be answered."""

    def __init__(self, sentence: str = "") -> None:
        """Say why in ``sentence``; the open block takes note, so that nobody can swallow it."""
        super().__init__(sentence)
        block.refused(self)


class Known:
    """What is known of a uniform number, in all draws that gave it: it lies in [low, high)."""

    def __init__(self, site: Site) -> None:
        """Nothing is known of the number drawn at ``site``."""
        self.site, self.asked = site, 0
        self.low, self.high = 0.0, 1.0
        self.raced: Raced | None = None
        """The race it has taken part in, after which only its order among the others is known."""
        self.questions: list[Question] = []
        """For the audit."""


class Uniform:
    """A number drawn uniformly from [0, 1)."""

    def __init__(self, draws: Draws, site: Site, draw: Draw | None = None) -> None:
        """Every question is put to ``draws`` at ``site`` and the number of the question.

        ``draw`` says which state of a generator it is drawn from, if that is known.
        """
        self.draws, self.draw = draws, draw or Draw(site)
        self.known: Known = self.draw.shared(lambda: Known(site))

    def below(self, bound: float, place: str = "") -> bool:
        """Return whether the uniform is below ``bound``, conditioned on all earlier answers.

        ``place`` is the line that compares, if it is not the one that is running.
        """
        if math.isnan(bound) or not 0 < bound < 1:
            return bound >= 1
        known = self.known
        look(self.draw)
        if not known.low < bound < known.high:
            audit.asked(known.questions, self.draw, (bound,), None, place)
            return bound >= known.high
        if known.raced:
            audit.compared_after(self.draw, known.raced)
            raise NeedsValue("random noise that has already decided a race is compared with a number")
        answer = self._ask(np.array([bound - known.low, known.high - bound]) / (known.high - known.low)) == 0
        cell = Cell(0, 0.0, bound) if answer else Cell(1, bound, 1.0)
        audit.asked(known.questions, self.draw, (bound,), cell, place)
        known.low, known.high = max(known.low, cell.low), min(known.high, cell.high)
        return answer

    def interval_of(self, bounds: Sequence[float], place: str = "") -> int:
        """Return how many of the non-decreasing ``bounds`` are at or below the uniform: an inverse-CDF lookup."""
        known = self.known
        look(self.draw)
        inside = [min(max(bound, known.low), known.high) for bound in bounds]
        edges = np.array([known.low, *inside, known.high])
        masses = np.diff(edges)
        if known.raced:
            audit.compared_after(self.draw, known.raced)
        if known.raced or (masses < 0).any():
            raise NeedsValue("a random number is looked up in bounds that are not sorted, or after a race")
        cells = np.count_nonzero(masses)
        drawn = cells > 1
        rounding.looked_up(int(cells))
        found = self._ask(masses / masses.sum()) if drawn else int(masses.argmax())
        cell = Cell(found, float([0.0, *bounds][found]), float([*bounds, 1.0][found]))
        audit.asked(known.questions, self.draw, bounds, cell if drawn else None, place)
        known.low, known.high = float(edges[found]), float(edges[found + 1])
        return found

    def _ask(self, pmf: Any) -> int:
        known = self.known
        known.asked += 1
        rounding.asked(again=known.asked > 1)
        return self.draws.categorical(pmf, (*known.site, known.asked))


def look(draw: Draw) -> None:
    """Say that a draw is looked at; refuses one that hangs together with another in a way that is not known."""
    refusal = draw.look()
    if refusal:
        raise NeedsValue(refusal)


class Step(NamedTuple):
    """One monotone operation: how it acts on the log-scale bookkeeping of races, and its inverse for comparisons."""

    name: str
    number: float
    inverse: Callable[[float], float]
    increasing: bool


class Continuous(NamedTuple):
    """A monotone function of a uniform: ``steps`` applied in order."""

    uniform: Uniform
    steps: tuple[Step, ...] = ()

    def then(self, step: Step) -> Continuous:
        """Return the value with one more operation applied."""
        return Continuous(self.uniform, (*self.steps, step))

    def below(self, bound: float, place: str = "") -> bool:
        """Return whether the value is below ``bound``, by carrying the bound back to the uniform; never below NaN."""
        if math.isnan(bound):
            return False
        increasing = True
        for step in reversed(self.steps):
            bound = step.inverse(bound)
            increasing = increasing == step.increasing
        return self.uniform.below(bound, place) == increasing

    def interval_of(self, bounds: Sequence[float], place: str = "") -> int:
        """Return how many of the non-decreasing ``bounds`` are at or below the value: an inverse-CDF lookup."""
        if not all(step.increasing for step in self.steps):
            raise NeedsValue("a decreasing image of a random number is looked up in bounds")
        for step in reversed(self.steps):
            bounds = [step.inverse(bound) for bound in bounds]
        return self.uniform.interval_of(bounds, place)


class Deferred:
    """An outcome that is computed when it is looked at, once."""

    def __init__(self, compute: Callable[[], Any]) -> None:
        """``compute`` may draw; it is called at most once."""
        self._compute: Callable[[], Any] | None = compute
        self._value: Any = None

    def value(self) -> Any:
        """Return the outcome."""
        if self._compute is not None:
            self._value, self._compute = self._compute(), None
        return self._value

    @property
    def decided(self) -> bool:
        """Whether it has been looked at."""
        return self._compute is None

    def below(self, bound: float) -> bool:
        """Return whether the outcome is below ``bound``."""
        return bool(self.value() < bound)


class Categorical(Deferred):
    """An outcome of a pmf. If nobody ever looks, its law is known without a run for each outcome."""

    def __init__(self, draws: Draws, pmf: Any, site: Site, first: int = 0, draw: Draw | None = None) -> None:
        """Outcome j of ``pmf`` means the value ``first + j``; ``draw`` is as for ``Uniform``."""
        self.pmf, self.first, self.draw = pmf, first, draw or Draw(site)
        drawn = self.draw.shared(lambda: Deferred(lambda: draws.categorical(pmf, site)))

        def compute() -> Any:
            look(self.draw)
            return first + drawn.value()

        super().__init__(compute)

    @property
    def alone(self) -> bool:
        """Whether no other draw from the same state of a generator has been looked at."""
        return self.draw.origin is None or not self.draw.origin.looked_at

    def outcomes(self) -> list[tuple[int, float]]:
        """Return every value and its probability, for an outcome nobody has looked at."""
        return [(self.first + j, mass) for j, mass in enumerate(self.pmf.tolist()) if mass > 0]


class Chosen(Deferred):
    """A number that is known for every outcome of one categorical draw."""

    def __init__(self, source: Categorical, values: Mapping[int, Any]) -> None:
        """``values`` has an entry for every outcome of ``source``."""
        self.source, self.values = source, values
        super().__init__(lambda: values[source.value()])

    @property
    def decided(self) -> bool:
        """Whether the draw has been looked at."""
        return self.source.decided


class Count(Deferred):
    """A sum of non-negative outcomes, looked at from the left and no further than a comparison needs."""

    def __init__(self, parts: Iterable[Any]) -> None:
        """``parts`` are numbers or deferred outcomes, none negative."""
        self._parts = tuple(parts)
        super().__init__(lambda: sum(known(part) for part in self._parts))

    def below(self, bound: float) -> bool:
        """Return whether the sum is below ``bound``; parts after the one that reaches it stay unknown."""
        total = 0
        for part in self._parts:
            total += known(part)
            if total >= bound:
                return False
        return total < bound


class Product(Deferred):
    """A product of outcomes; nothing after the first zero is looked at."""

    def __init__(self, parts: Iterable[Any]) -> None:
        """``parts`` are numbers or deferred outcomes."""
        self._parts = tuple(parts)
        super().__init__(self._multiply)

    def _multiply(self) -> Any:
        product = 1
        for part in self._parts:
            product = product * known(part)
            if product == 0:
                break
        return product


def is_open(element: Any) -> bool:
    """Return whether an element is still undecided."""
    return isinstance(element, Continuous) or (isinstance(element, Deferred) and not element.decided)


def known(element: Any) -> Any:
    """Return the value of an element: a number as it is, a deferred outcome looked at; refuses a continuous one."""
    if isinstance(element, Deferred):
        return element.value()
    if isinstance(element, Continuous):
        raise NeedsValue("the value of a uniform random number is needed, not only a comparison with it")
    return element


def log_step() -> Step:
    """The natural logarithm."""
    return Step("log", 0.0, lambda bound: math.exp(min(bound, 700.0)), increasing=True)


def exp_step() -> Step:
    """The exponential function."""
    return Step("exp", 0.0, lambda bound: math.log(bound) if bound > 0 else -math.inf, increasing=True)


def negate_step() -> Step:
    """Minus the value."""
    return Step("negate", 0.0, lambda bound: -bound, increasing=False)


def plus_step(number: float) -> Step:
    """The value plus a number."""
    return Step("plus", number, lambda bound: bound - number, increasing=True)


def times_step(number: float) -> Step:
    """The value times a positive number. Raises ``NeedsValue`` for another one."""
    if not number > 0:
        raise NeedsValue(f"a random number is multiplied by {number}, which does not keep its order")
    return Step("times", number, lambda bound: bound / number, increasing=True)


def divided_into_step(number: float) -> Step:
    """A non-negative number divided by the (positive) value."""
    if not number >= 0:
        raise NeedsValue(f"{number} is divided by a random number, which does not keep its order")
    return Step("divided into", number, lambda bound: number / bound if bound > 0 else math.inf, increasing=False)


def exponential(uniform: Uniform) -> Continuous:
    """Return Exp(1) as -log u."""
    return Continuous(uniform).then(log_step()).then(negate_step())
