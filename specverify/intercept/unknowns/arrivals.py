"""Products of uniform numbers, in closed form: their logarithms are times of arrival.

``-log u`` is an exponential time, so that of a product is the time at which as many have arrived one after the other.
What is known of products of which each contains the one before it, as a cumulated product has them, is a window for
each such time. Their joint density is ``exp(-s)``, s the last of them, so the probability is the integral of a
polynomial, piece by piece, against an exponential: exact in as many digits as are carried. Of one product of n numbers
it is ``c (1 + L + ... + L^(n-1) / (n-1)!)`` below c, with ``L = -log c``.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from functools import lru_cache
from itertools import pairwise
from math import inf, log  # by name: inside a block ``math`` has others
from typing import NamedTuple, TypeAlias

from specverify.intercept.unknowns.formulas import Fact, Formula
from specverify.intercept.unknowns.steps import MIRRORED

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
    found: dict[frozenset[tuple[int, bool]], tuple[float, float]] = {}
    for place, (low, high) in enumerate(ends):
        if (low, high) != (0.0, 1.0):
            found[frozenset({(place, False)})] = (-log(high), -log(low) if low > 0 else inf)
    for fact in facts:
        times_of = _times(fact.formula)
        if times_of is None:
            return None
        low, high = _between(times_of, fact)
        before = found.get(times_of.numbers, (0.0, inf))
        found[times_of.numbers] = max(low, before[0]), min(high, before[1])
    chain = sorted(found, key=len)
    nested = all(one < other for one, other in pairwise(chain))
    if not chain or not nested or len({place for place, _ in chain[-1]}) < len(chain[-1]):
        return None
    numbers = [len(each) for each in chain]
    more = [number - before for number, before in zip(numbers, [0, *numbers], strict=False)]
    return tuple(Window(number, *found[each]) for number, each in zip(more, chain, strict=True))


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
        found: _Times | None = _Times(frozenset({(formula.operands[0], flipped)}), 1.0, 0.0, exponential=True)
        steps = formula.steps[2:] if flipped else formula.steps
    elif formula.name in {"add", "multiply"}:
        found, steps = _of_two(formula), formula.steps
    else:
        return None
    for step in steps:
        found = found and _stepped(found, step.name, step.number)
    return found


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


def _stepped(of: _Times, name: str, number: float) -> _Times | None:
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
    found, total = [], Decimal(0)
    for piece, end in _with_ends(pieces):
        found.append(_Piece(piece.start, [total, *(c / (k + 1) for k, c in enumerate(piece.polynomial))]))
        if end is not None:
            total = _value(found[-1].polynomial, end - piece.start)
    return found


def _within(pieces: list[_Piece], window: Window) -> list[_Piece]:
    """Return what is left inside a window, 0 behind it; nothing for an empty one."""
    if window.low >= window.high:
        return []
    low, high = Decimal(window.low), None if window.high == inf else Decimal(window.high)
    found = []
    for piece, end in _with_ends(pieces):
        if (end is None or end > low) and (high is None or piece.start < high):
            start = max(low, piece.start)
            found.append(_Piece(start, _moved(piece.polynomial, start - piece.start)))
    return found if high is None else [*found, _Piece(high, [])]


def _mass(piece: _Piece, end: Decimal | None) -> Decimal:
    """Return the integral of a piece times ``exp(-s)``: the sum of all derivatives stands for it."""
    derivatives = [piece.polynomial]
    while derivatives[-1]:
        derivatives.append([k * c for k, c in enumerate(derivatives[-1])][1:])
    found = sum((each[0] for each in derivatives if each), Decimal(0))
    if end is not None:
        length = end - piece.start
        found -= (-length).exp() * sum((_value(each, length) for each in derivatives), Decimal(0))
    return (-piece.start).exp() * found


def _value(polynomial: Polynomial, at: Decimal) -> Decimal:
    total = Decimal(0)
    for coefficient in reversed(polynomial):
        total = total * at + coefficient
    return total


def _moved(polynomial: Polynomial, by: Decimal) -> Polynomial:
    """Return a polynomial in what is left of its variable behind ``by``: Horner's scheme, once for each coefficient."""
    found = list(polynomial)
    for first in range(len(found) - 1):
        for place in range(len(found) - 2, first - 1, -1):
            found[place] += by * found[place + 1]
    return found
