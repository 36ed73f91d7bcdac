"""What is known of several uniform numbers together, and coins that hang on more than one of them.

A comparison of a quantity that is made of several is a coin like one of a single number: its probability given all
earlier answers. Products that contain each other have it in closed form (``together``). Else it lies between two
bounds (``enclosures``); what the middle of them may be off counts as what rounding may do to the law. Where the bounds
are too far apart, or do not tell whether an answer can come at all, the question is refused with what is missing.

Products of uniform numbers, in closed form: their logarithms are times of arrival.

``-log u`` is an exponential time, so that of a product is the time at which as many have arrived one after the other.
What is known of products of which each contains the one before it, as a cumulated product has them, is a window for
each such time. Their joint density is ``exp(-s)``, s the last of them, so the probability is the integral of a
polynomial, piece by piece, against an exponential: exact in as many digits as are carried. Of one product of n numbers
it is ``c (1 + L + ... + L^(n-1) / (n-1)!)`` below c, with ``L = -log c``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal, localcontext
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeAlias

from specverify.intercept.symbolic.enclosures import MOST_UNIFORMS, OUTWARDS, Fact, Formula, Share, share
from specverify.intercept.symbolic.steps import MIRRORED, STEPPED, carried_back
from specverify.intercept.unpatched import inf, log, prod
from specverify.laws.rounding import LARGEST

# Arrivals


DIGITS = Context(prec=60)
"""More than are lost by the differences of some ten windows."""
Polynomial: TypeAlias = list[Decimal]
"""Coefficients, the constant one first."""


class Window(NamedTuple):
    """When so many have arrived, one after the other."""

    number: int
    low: float
    high: float


class _Piece(NamedTuple):
    start: Decimal
    polynomial: Polynomial
    """Of what has passed since the start."""


class _Times(NamedTuple):
    """``constant - rate * time`` of what has arrived, or the exponential of it."""

    numbers: frozenset[tuple[int, bool]]
    """The places of the uniform numbers, and whether it is 1 - u that counts."""
    rate: float
    constant: float
    exponential: bool


# From facts to windows


def windows(ends: Sequence[tuple[float, float]], facts: Sequence[Fact]) -> tuple[Window, ...] | None:
    """Return what all facts of uniform numbers between ``ends`` say of times of arrival; None if they say other things.

    A window without a time in it is one whose end is not behind its beginning.
    """
    result: dict[frozenset[tuple[int, bool]], tuple[float, float]] = {}
    for place, (low, high) in enumerate(ends):
        if (low, high) != (0.0, 1.0):
            result[frozenset({(place, False)})] = (-log(high), -log(low) if low > 0 else inf)
    for fact in facts:
        times_of = _times(fact.formula)
        if times_of is None:
            return None
        low, high = _between(times_of, fact)
        before = result.get(times_of.numbers, (0.0, inf))
        result[times_of.numbers] = max(low, before[0]), min(high, before[1])
    chain = sorted(result, key=len)
    nested = all(one < other for one, other in pairwise(chain))
    if not chain or not nested or len({place for place, _ in chain[-1]}) < len(chain[-1]):
        return None
    numbers = [len(each) for each in chain]
    more = [number - before for number, before in zip(numbers, [0, *numbers], strict=False)]
    return tuple(Window(number, *result[each]) for number, each in zip(more, chain, strict=True))


def _between(of: _Times, fact: Fact) -> tuple[float, float]:
    """Return the window that a fact leaves of a time."""
    level = fact.bound if not of.exponential else log(fact.bound) if fact.bound > 0 else -inf
    at = (of.constant - level) / of.rate
    after = fact.true == (of.rate > 0)
    return (max(at, 0.0), inf) if after else (0.0, at)


def _times(formula: Formula) -> _Times | None:
    """Return a quantity by the times of which it is made; None for another one."""
    if (formula.low, formula.high) != (-inf, inf) and not _never_reached(formula):
        return None
    if formula.name == "uniform":
        flipped = formula.steps[:2] == MIRRORED
        result: _Times | None = _Times(frozenset({(formula.operands[0], flipped)}), 1.0, 0.0, exponential=True)
        steps = formula.steps[2:] if flipped else formula.steps
    elif formula.name in {"add", "multiply"}:
        result, steps = _of_two(formula), formula.steps
    else:
        return None
    for step in steps:
        result = result and _has_steps(result, step.name, step.number)
    return result


def _never_reached(formula: Formula) -> bool:
    """Return whether clamps are where no value is: what is positive is often clamped at 0 by its own steps."""
    within = _times(formula._replace(low=-inf, high=inf))
    if within is None:
        return False
    ends = (0.0, inf) if within.exponential else (-inf, inf)
    return formula.low <= ends[0] and formula.high >= ends[1]


def _of_two(formula: Formula) -> _Times | None:
    one, other = map(_times, formula.operands)
    exponential = formula.name == "multiply"
    if one is None or other is None or one.rate != other.rate or one.numbers & other.numbers:
        return None
    if not one.exponential == other.exponential == exponential:
        return None
    return _Times(one.numbers | other.numbers, one.rate, one.constant + other.constant, exponential)


def _has_steps(of: _Times, name: str, number: float) -> _Times | None:
    if name in {"log", "exp"}:
        return of._replace(exponential=name == "exp") if of.exponential == (name == "log") else None
    if name == "plus":
        return None if of.exponential else of._replace(constant=of.constant + number)
    if name == "times" and of.exponential:
        return of._replace(constant=of.constant + log(number)) if number > 0 else None
    if name == "times" or (name == "power" and of.exponential):
        return of._replace(constant=of.constant * number, rate=of.rate * number)
    return None


# The probability of windows


@lru_cache(maxsize=1 << 14)
def probability(of: tuple[Window, ...]) -> Decimal:
    """Return the probability that every time lies in its window."""
    with localcontext(DIGITS):
        density = [_Piece(Decimal(0), [])]
        for place, window in enumerate(of):
            more = window.number
            if place == 0:
                density, more = [_Piece(Decimal(0), [Decimal(1)])], more - 1
            for _ in range(more):
                density = _integral(density)
            density = _within(density, window)
            if not density:
                return Decimal(0)
        return sum((_mass(piece, end) for piece, end in _with_ends(density)), Decimal(0))


def _with_ends(pieces: list[_Piece]) -> list[tuple[_Piece, Decimal | None]]:
    """Return pieces with the start of the next one, None behind the last."""
    return list(zip(pieces, [*(piece.start for piece in pieces[1:]), None], strict=True))


def _integral(pieces: list[_Piece]) -> list[_Piece]:
    """Return the integral up to every time."""
    result, total = [], Decimal(0)
    for piece, end in _with_ends(pieces):
        result.append(_Piece(piece.start, [total, *(c / (k + 1) for k, c in enumerate(piece.polynomial))]))
        if end is not None:
            total = _value(result[-1].polynomial, end - piece.start)
    return result


def _within(pieces: list[_Piece], window: Window) -> list[_Piece]:
    """Return what is left inside a window, 0 behind it; nothing for an empty one."""
    if window.low >= window.high:
        return []
    low, high = Decimal(window.low), None if window.high == inf else Decimal(window.high)
    result = []
    for piece, end in _with_ends(pieces):
        if (end is None or end > low) and (high is None or piece.start < high):
            start = max(low, piece.start)
            result.append(_Piece(start, _moved(piece.polynomial, start - piece.start)))
    return result if high is None else [*result, _Piece(high, [])]


def _mass(piece: _Piece, end: Decimal | None) -> Decimal:
    """Return the integral of a piece times ``exp(-s)``: the sum of all derivatives stands for it."""
    derivatives = [piece.polynomial]
    while derivatives[-1]:
        derivatives.append([k * c for k, c in enumerate(derivatives[-1])][1:])
    result = sum((each[0] for each in derivatives if each), Decimal(0))
    if end is not None:
        length = end - piece.start
        result -= (-length).exp() * sum((_value(each, length) for each in derivatives), Decimal(0))
    return (-piece.start).exp() * result


def _value(polynomial: Polynomial, at: Decimal) -> Decimal:
    total = Decimal(0)
    for coefficient in reversed(polynomial):
        total = total * at + coefficient
    return total


def _moved(polynomial: Polynomial, by: Decimal) -> Polynomial:
    """Return a polynomial in what is left of its variable behind ``by``: Horner's scheme, once for each coefficient."""
    result = list(polynomial)
    for first in range(len(result) - 1):
        for place in range(len(result) - 2, first - 1, -1):
            result[place] += by * result[place + 1]
    return result


# Together


NEVER = 2.0**-54
"""Less probability than a uniform of float64 can show."""


class Known(Protocol):
    """What is known of a uniform number."""

    low: float
    high: float
    together: Together | None


class Quantity(Protocol):
    """What is made of uniform numbers."""

    def formula(self, place_of: Callable[[Known], int]) -> Formula:
        """Return it in terms of the places of its uniform numbers."""


class Answer(NamedTuple):
    """What was found of a quantity: that it is below a bound, or is not."""

    of: Quantity
    bound: float
    or_equal: bool
    true: bool

    def implies(self, of: Quantity, bound: float, *, or_equal: bool) -> bool:
        """Return whether the same answer follows about another bound of the same quantity."""
        if of != self.of or (bound == self.bound and or_equal not in {self.or_equal, self.true}):
            return False
        return bound >= self.bound if self.true else bound <= self.bound


class Together:
    """Uniform numbers, and the answers that they have given together. Their own answers are in their intervals."""

    def __init__(self, members: Sequence[Known], answers: Sequence[Answer] = ()) -> None:
        """``answers`` are of quantities made of ``members`` alone."""
        self.members, self.answers = list(members), list(answers)

    def chance(self, of: Quantity, bound: float, *, or_equal: bool) -> Chance:
        """Return how likely a quantity of the members is below ``bound``, given all that is known of them."""
        implied = [answer.true for answer in self.answers if answer.implies(of, bound, or_equal=or_equal)]
        if implied:
            return Chance(float(implied[0]))
        places = {id(known): place for place, known in enumerate(self.members)}

        def fact(answer: Answer) -> Fact:
            formula = answer.of.formula(lambda known: places[id(known)])
            return Fact(formula, answer.bound, answer.or_equal, answer.true)

        ends = tuple((known.low, known.high) for known in self.members)
        return _chance(ends, tuple(map(fact, self.answers)), fact(Answer(of, bound, or_equal, true=True)))

    def learn(self, answer: Answer) -> None:
        """Keep what was answered; the members know of each other from now on."""
        self.answers.append(answer)
        for known in self.members:
            known.together = self


class Chance(NamedTuple):
    """A probability that is known to lie ``within`` so much of a number, or why it is not known."""

    middle: float
    within: float = 0.0
    refusal: str = ""


def among(found: Sequence[Known]) -> Together:
    """Return the uniform numbers, and all of which something is known together with them."""
    groups = list(dict.fromkeys(known.together or Together([known]) for known in found))
    return Together(
        list(dict.fromkeys(known for group in groups for known in group.members)),
        [answer for group in groups for answer in group.answers],
    )


@lru_cache(maxsize=1 << 14)
def _chance(ends: tuple[tuple[float, float], ...], facts: tuple[Fact, ...], asked: Fact) -> Chance:
    closed = _in_closed_form(ends, facts, asked)
    if closed is not None:
        return Chance(0.0 if closed < NEVER else 1.0 if 1 - closed < NEVER else closed)
    if len(ends) > MOST_UNIFORMS:
        return Chance(0.5, 0.5, f"{len(ends)} random numbers are compared together, and {MOST_UNIFORMS} can be at most")
    result = _of_one_quantity(ends, facts, asked) or share(ends, facts, asked)
    if result.whole <= 0:
        return Chance(0.5, 0.5, "random numbers are compared together after answers that can hardly come together")
    if result.open:
        what = "random numbers are compared together, and whether one of the answers can come at all is not told"
        return Chance(0.5, 0.5, f"{what} by boxes; that they are compared with is as good as a value they often have, "
                                "or as an earlier answer")  # fmt: skip
    for certain, (least, most) in ((1.0, result.no), (0.0, result.yes)):
        if least <= 0:
            return Chance(certain, float(most / result.whole))
    low, high = result.chance
    within = (high - low) / 2
    refusal = (
        f"{len(ends)} random numbers are compared together, and the probability of it is known to lie between "
        f"{low:.6g} and {high:.6g}: for a verdict they may be {LARGEST:g} apart; compare fewer of them together"
    )
    return Chance(float(low + within), float(within), refusal if high - low > LARGEST else "")


def _of_one_quantity(ends: Any, facts: tuple[Fact, ...], asked: Fact) -> Share | None:
    """Return the volumes of both answers if all facts are about what is asked: differences of its own law."""
    levels = [_level(fact) for fact in (*facts, asked)]
    if not facts or None in levels or len({fact.formula[:2] for fact in (*facts, asked)}) > 1:
        return None
    *given, (at, above) = [level for level in levels if level is not None]
    low = max((level for level, below in given if not below), default=-inf)
    high = min((level for level, below in given if below), default=inf)
    core = asked.formula._replace(steps=())
    least, most = (prod(end - start for start, end in ends) * (1 + way * OUTWARDS * len(ends)) for way in (-1, 1))
    ladder = [share(ends, (), Fact(core, level)).yes if abs(level) < inf else (least, most) if level > 0 else (0.0, 0.0)
              for level in (low, min(max(at, low), high), high)]  # fmt: skip
    parts = [(0.0, 0.0) if one == other else (max(0.0, other[0] - one[1]), max(0.0, other[1] - one[0]))
             for one, other in pairwise(ladder)]  # fmt: skip
    return Share(*(parts if above else parts[::-1]))


def _level(fact: Fact) -> tuple[float, bool] | None:
    """Return what a quantity without its steps is compared with, and whether it is below; None for steps and clamps."""
    formula = fact.formula
    if (formula.low, formula.high) != (-inf, inf) or any(step.name in STEPPED for step in formula.steps):
        return None
    turns = sum(not step.increasing for step in formula.steps)
    return carried_back(formula.steps, fact.bound), fact.true == (turns % 2 == 0)


def _in_closed_form(ends: Any, facts: tuple[Fact, ...], asked: Fact) -> float | None:
    """Return the probability of what is asked given the facts, if all is about products that contain each other."""
    result = windows(ends, (*facts, asked))
    if result is None:
        return None
    known = bool(facts) or any(each != (0.0, 1.0) for each in ends)
    given = windows(ends, facts) if known else ()
    if given is None:
        return None
    with localcontext(DIGITS):
        whole = probability(given) if given else 1
        return float(probability(result) / whole) if whole else None
