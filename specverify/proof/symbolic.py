"""Symbolic real numbers: quotients of polynomials, usable as elements of NumPy object arrays.

Arithmetic is exact. A comparison has no fixed answer, so the run of the number decides it: the run follows one answer
now and the other in a later run, and records the condition. Denominators are always positive on the path of their run:
a division first determines the sign of the divisor, and a division by zero raises, as with fractions.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from specverify.proof.polynomial import (
    ONE,
    Polynomial,
    common_monomial,
    constant_polynomial,
    primitive,
    quotient,
    unknown,
)

NEGATIVE, ZERO, POSITIVE = -1, 0, 1


class NeedsNumber(Exception):  # noqa: N818 - reads as the sentence it is
    """Raised if the program needs the concrete value of a probability, which a proof does not have."""


class Oracle(Protocol):
    """The interface of an object that decides comparisons of symbolic numbers, such as the run of a program."""

    def holds(self, polynomial: Polynomial, signs: frozenset[int]) -> bool:
        """Return whether the sign of ``polynomial`` is one of ``signs`` on the current path; a sign is -1, 0 or 1."""
        ...


class Real:
    """The quotient ``numerator / product of denominators`` in one run.

    Operators take numbers of the same run and rationals. A result that does not depend on any unknown is a
    ``Fraction``. Raises ``NeedsNumber`` on conversion to a float or an integer.
    """

    __slots__ = ("denominators", "numerator", "run")

    def __init__(self, run: Oracle, numerator: Polynomial, denominators: tuple[Polynomial, ...] = ()) -> None:
        """Store the quotient of ``numerator`` and the product of ``denominators``, in the run ``run``.

        The denominators are primitive and positive on the run's path; equal factors are adjacent.
        """
        self.run, self.numerator, self.denominators = run, numerator, denominators

    def __add__(self, other: Any) -> Any:
        known = self._taken(other)
        if known is NotImplemented:
            return known
        if known.denominators == self.denominators:
            return number(self.run, self.numerator + known.numerator, self.denominators)
        mine: Counter[Polynomial] = Counter(self.denominators)
        theirs: Counter[Polynomial] = Counter(known.denominators)
        left = product(tuple((theirs - mine).elements()))
        right = product(tuple((mine - theirs).elements()))
        total = self.numerator * left + known.numerator * right
        return number(self.run, total, tuple((mine | theirs).elements()))

    __radd__ = __add__

    def __neg__(self) -> Real:
        return Real(self.run, self.numerator.times(-1), self.denominators)

    def __pos__(self) -> Real:
        return self

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return (-self) + other

    def __mul__(self, other: Any) -> Any:
        known = self._taken(other)
        if known is NotImplemented:
            return known
        return number(self.run, self.numerator * known.numerator, self.denominators + known.denominators)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        known = self._taken(other)
        return known if known is NotImplemented else self * known.inverse()

    def __rtruediv__(self, other: Any) -> Any:
        return self.inverse() * other

    def __pow__(self, exponent: Any) -> Any:
        if not isinstance(exponent, int) or exponent < 0:
            return NotImplemented
        return math.prod((self,) * exponent, start=Fraction(1))

    def inverse(self) -> Any:
        """Return 1 divided by the number.

        This decides the number's sign; raises ``ZeroDivisionError`` if the number is 0.
        """
        if self._sign_in(ZERO):
            raise ZeroDivisionError("division by a probability that is 0 on this path")
        content, rest = primitive(self.numerator)
        monomial = common_monomial(rest)
        factors = [unknown(item) for item in monomial]
        for factor in factors:
            rest = quotient(rest, factor) or rest
        if rest != ONE:
            if not self.run.holds(rest, frozenset({POSITIVE})):
                content, rest = -content, rest.times(-1)
            factors.append(rest)
        return number(self.run, product(self.denominators).times(1 / Fraction(content)), tuple(factors))

    def __abs__(self) -> Any:
        return -self if self._sign_in(NEGATIVE) else self

    def __bool__(self) -> bool:
        return not self._sign_in(ZERO)

    def __lt__(self, other: Any) -> bool:
        return self._compared(other, NEGATIVE)

    def __le__(self, other: Any) -> bool:
        return self._compared(other, NEGATIVE, ZERO)

    def __gt__(self, other: Any) -> bool:
        return self._compared(other, POSITIVE)

    def __ge__(self, other: Any) -> bool:
        return self._compared(other, POSITIVE, ZERO)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Real) and other.run is not self.run:
            return False  # remembered from another path, where other things were decided
        return self._compared(other, ZERO)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(id(self.run))  # one bucket: containers then ask ``==``, which decides by value

    def __float__(self) -> float:
        raise NeedsNumber("a probability was turned into a float")

    __int__ = __index__ = __float__

    def __repr__(self) -> str:
        return f"Real({dict(self.numerator.terms)} / {[dict(item.terms) for item in self.denominators]})"

    def _taken(self, other: Any) -> Any:
        if isinstance(other, Real):
            assert other.run is self.run, "a number of another run"
            return other
        known = rational(other)
        return NotImplemented if known is None else Real(self.run, constant_polynomial(known))

    def _compared(self, other: Any, *signs: int) -> bool:
        if isinstance(other, float) and math.isinf(other):
            return (NEGATIVE if other > 0 else POSITIVE) in signs
        difference = self - other
        if isinstance(difference, Real):
            return self.run.holds(difference.numerator, frozenset(signs))
        return sign(difference) in signs

    def _sign_in(self, *signs: int) -> bool:
        return self.run.holds(self.numerator, frozenset(signs))


def number(run: Oracle, numerator: Polynomial, denominators: tuple[Polynomial, ...] = ()) -> Any:
    """Return ``numerator`` divided by all ``denominators``, as a number of ``run``.

    A denominator that divides the numerator is cancelled. If no unknown is left, the result is a ``Fraction``.
    """
    left: list[Polynomial] = []
    for factor in sorted(denominators, key=hash) if numerator else ():
        divided = quotient(numerator, factor)
        if divided is None:
            left.append(factor)
        else:
            numerator = divided
    if not left and numerator.degree == 0:
        return Fraction(numerator.terms.get((), 0))
    return Real(run, numerator, tuple(left))


def product(factors: tuple[Polynomial, ...]) -> Polynomial:
    """Return the product of the polynomials ``factors``; 1 if there is none."""
    return math.prod(factors, start=ONE)


def rational(value: Any) -> Fraction | None:
    """Return ``value``, a finite number, as a ``Fraction``; None for symbolic numbers and anything else."""
    if isinstance(value, (int, Fraction, float)):
        return Fraction(value)
    return Fraction(value.item()) if isinstance(value, np.generic) else None


def sign(value: Any) -> int:
    """Return the sign of the number ``value``: -1, 0 or 1."""
    return int(value > 0) - int(value < 0)
