"""Random values that have not been looked at yet, and what may be asked of them without knowing their value.

A ``Uniform`` is never given a value. It may be compared with numbers: each comparison is a coin whose probability is
the share of the interval the uniform is still known to lie in, and narrows that interval, so that comparing the same
uniform twice gives the right, correlated law. A ``Deferred`` is an outcome that is drawn when somebody looks at it.
Nothing that is not looked at is ever branched on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from reference import Draws, Site
from specverify.enumeration import Undecided


class NeedsValue(Exception):  # noqa: N818 - reads as the sentence it is
    """The code asked for the value of a continuous random number, which an enumeration cannot answer."""


class Uniform:
    """A number drawn uniformly from [0, 1), known to lie in [low, high)."""

    def __init__(self, draws: Draws, site: Site) -> None:
        """Every question is put to ``draws`` at ``site`` and the number of the question."""
        self._draws, self._site, self._asked = draws, site, 0
        self.low, self.high = 0.0, 1.0
        self.raced = False
        """Whether it has taken part in a race, after which only its order among the others is known."""

    def below(self, bound: float) -> bool:
        """Return whether the uniform is below ``bound``, conditioned on all earlier answers."""
        if math.isnan(bound) or bound <= self.low:
            return False
        if bound >= self.high:
            return True
        if self.raced:
            raise NeedsValue("random noise that has already decided a race is compared with a number")
        answer = self._draw(np.array([bound - self.low, self.high - bound]) / (self.high - self.low)) == 0
        if answer:
            self.high = bound
        else:
            self.low = bound
        return answer

    def interval_of(self, bounds: Sequence[float]) -> int:
        """Return how many of the non-decreasing ``bounds`` are at or below the uniform: an inverse-CDF lookup."""
        inside = [min(max(bound, self.low), self.high) for bound in bounds]
        edges = np.array([self.low, *inside, self.high])
        masses = np.diff(edges)
        if self.raced or (masses < 0).any():
            raise NeedsValue("a random number is looked up in bounds that are not sorted, or after a race")
        found = self._draw(masses / masses.sum()) if np.count_nonzero(masses) > 1 else int(masses.argmax())
        self.low, self.high = float(edges[found]), float(edges[found + 1])
        return found

    def _draw(self, pmf: Any) -> int:
        self._asked += 1
        return self._draws.categorical(pmf, (*self._site, self._asked))


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

    def below(self, bound: float) -> bool:
        """Return whether the value is below ``bound``, by carrying the bound back to the uniform; never below NaN."""
        if math.isnan(bound):
            return False
        increasing = True
        for step in reversed(self.steps):
            bound = step.inverse(bound)
            increasing = increasing == step.increasing
        return self.uniform.below(bound) == increasing

    def interval_of(self, bounds: Sequence[float]) -> int:
        """Return how many of the non-decreasing ``bounds`` are at or below the value: an inverse-CDF lookup."""
        if not all(step.increasing for step in self.steps):
            raise NeedsValue("a decreasing image of a random number is looked up in bounds")
        for step in reversed(self.steps):
            bounds = [step.inverse(bound) for bound in bounds]
        return self.uniform.interval_of(bounds)


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

    def __init__(self, draws: Draws, pmf: Any, site: Site, first: int = 0) -> None:
        """Outcome j of ``pmf`` means the value ``first + j``."""
        self.pmf, self.first = pmf, first
        super().__init__(lambda: first + draws.categorical(pmf, site))

    def outcomes(self) -> list[tuple[int, float]]:
        """Return every value and its probability, for an outcome nobody has looked at."""
        return [(self.first + j, mass) for j, mass in enumerate(self.pmf.tolist()) if mass > 0]


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


def final_outcome(elements: Sequence[Any]) -> Any:
    """Return what a run ends with: a tuple of values, or ``Undecided`` where some were never looked at."""
    open_ones = [element for element in elements if is_open(element)]
    if not open_ones or not all(isinstance(element, Categorical) for element in open_ones):
        return tuple(known(element) for element in elements)
    found: list[tuple[tuple[Any, ...], float]] = [((), 1.0)]
    for element in elements:
        choices = element.outcomes() if is_open(element) else [(known(element), 1.0)]
        found = [((*values, value), weight * mass) for values, weight in found for value, mass in choices]
    return Undecided(tuple(found))


def known(element: Any) -> Any:
    """Return the value of an element: a number as it is, a deferred outcome looked at; refuses a continuous one."""
    if isinstance(element, Deferred):
        return element.value()
    if isinstance(element, Continuous):
        raise NeedsValue("the value of a uniform random number is needed, not only a comparison with it")
    return element


def race(draws: Draws, site: Site, entries: Sequence[Any]) -> int:
    """Return the winner of ``argmax`` over scores that hold one exponential clock each (the Gumbel trick).

    Every entry must be a monotone image of ``a - log E`` with its own E ~ Exp(1) and all of one form, so that entry j
    wins with probability proportional to exp(a_j); or minus infinity, which never wins.
    """
    weights, forms = [], set()
    for entry in entries:
        weight, form = _race_weight(entry)
        weights.append(weight)
        forms |= form
    clocks = [entry.uniform for entry in entries if isinstance(entry, Continuous)]
    if forms not in ({"ratio"}, {"sum"}) or len(set(map(id, clocks))) < len(clocks):
        raise NeedsValue("the largest of several random scores is asked for, and they are not a race of clocks")
    if any(clock.raced or clock.low > 0 or clock.high < 1 for clock in clocks):
        raise NeedsValue("random noise is used in a second race, or after it was compared with a number")
    for clock in clocks:
        clock.raced = True
    pmf = np.exp(np.array(weights) - max(weights))
    return draws.categorical(pmf / pmf.sum(), site)


def _race_weight(entry: Any) -> tuple[float, set[str]]:
    """Return log weight and form of a race entry: ``w / E`` or ``a - log E``, with E written as -log u."""
    if not isinstance(entry, Continuous):
        number = float(known(entry))
        if number == -math.inf:
            return number, set()
        return (-math.inf, {"ratio"}) if number == 0.0 else (math.nan, {"number"})
    names = tuple(step.name for step in entry.steps)
    numbers = [step.number for step in entry.steps]
    if names[:2] != ("log", "negate"):
        return math.nan, {f"not a clock {names}"}
    if names[2:3] == ("divided into",) and all(name == "times" for name in names[3:]):
        product = math.prod(numbers[2:])
        return (math.log(product) if product > 0 else -math.inf), {"ratio"}
    if names[2:4] == ("log", "negate") and all(name == "plus" for name in names[4:]):
        return math.fsum(numbers[4:]), {"sum"}
    return math.nan, {f"unknown {names}"}


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
