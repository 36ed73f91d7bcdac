"""Polynomials with rational coefficients in numbered unknowns, used to decide identities.

A polynomial is 0 for all values of its unknowns if and only if it has no terms, so equality needs no solver.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypeAlias

Monomial: TypeAlias = tuple[int, ...]
"""Indices of the unknowns of a product, ascending and repeated for powers; () is the constant 1."""


class Polynomial:
    """An immutable sum of coefficients times monomials, created by ``constant_polynomial`` and ``unknown``."""

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: Mapping[Monomial, Any]) -> None:
        """Store ``terms``, a mapping of monomials (tuples of unknowns) to nonzero ``int`` or ``Fraction``."""
        self.terms = terms
        self._hash: int | None = None

    def __add__(self, other: Polynomial) -> Polynomial:
        terms = dict(self.terms)
        for monomial, coefficient in other.terms.items():
            total = terms.get(monomial, 0) + coefficient
            if total:
                terms[monomial] = total
            else:
                del terms[monomial]
        return Polynomial(terms)

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + other.times(-1)

    def __mul__(self, other: Polynomial) -> Polynomial:
        terms: dict[Monomial, Any] = {}
        for one, left in self.terms.items():
            for two, right in other.terms.items():
                monomial = tuple(sorted(one + two)) if one and two else one or two
                terms[monomial] = terms.get(monomial, 0) + left * right
        return Polynomial({monomial: value for monomial, value in terms.items() if value})

    def times(self, factor: Any) -> Polynomial:
        """Return the polynomial multiplied by ``factor``, a nonzero rational."""
        return Polynomial({monomial: value * factor for monomial, value in self.terms.items()})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.terms.items()))
        return self._hash

    def __bool__(self) -> bool:
        return bool(self.terms)

    @property
    def degree(self) -> int:
        """Return the largest number of unknowns in a product, counted with repetitions; 0 for a constant."""
        return max(map(len, self.terms), default=0)

    @property
    def unknowns(self) -> set[int]:
        """Return the numbers of the unknowns in the polynomial."""
        return {unknown for monomial in self.terms for unknown in monomial}

    @property
    def leading(self) -> Monomial:
        """Return the largest monomial in the graded lexicographic order. The polynomial must not be zero."""
        return min(self.terms, key=lambda monomial: (-len(monomial), monomial))

    def at(self, point: Mapping[int, Any]) -> Any:
        """Return the value of the polynomial at ``point``, which maps unknowns to values."""
        return sum(
            (value * math.prod(point[unknown] for unknown in monomial) for monomial, value in self.terms.items()),
            start=Fraction(0),
        )


def constant_polynomial(value: Any) -> Polynomial:
    """Return the rational number ``value`` as a polynomial."""
    return Polynomial({(): value} if value else {})


def unknown(number: int) -> Polynomial:
    """Return the polynomial that consists of the unknown ``number``."""
    return Polynomial({(number,): 1})


ONE = constant_polynomial(1)


def quotient(dividend: Polynomial, divisor: Polynomial) -> Polynomial | None:
    """Return the polynomial ``dividend / divisor``, or None if the division leaves a remainder."""
    result: dict[Monomial, Any] = {}
    lead = divisor.leading
    rest = dividend
    while rest:
        first = rest.leading
        left = _without(first, lead)
        if left is None:
            return None
        value = Fraction(rest.terms[first]) / divisor.terms[lead]
        result[left] = value.numerator if value.denominator == 1 else value
        rest -= divisor * Polynomial({left: result[left]})
    return Polynomial(result)


def primitive(polynomial: Polynomial) -> tuple[Any, Polynomial]:
    """Return (c, f) with ``polynomial = c f``: f has coprime integer coefficients and a positive leading one."""
    values = [Fraction(value) for value in polynomial.terms.values()]
    content = Fraction(math.gcd(*(value.numerator for value in values)), math.lcm(*(v.denominator for v in values)))
    if polynomial.terms[polynomial.leading] < 0:
        content = -content
    if content == 1:
        return content, polynomial
    return content, Polynomial(
        {m: (value / content).numerator for m, value in zip(polynomial.terms, values, strict=True)}
    )


def common_monomial(polynomial: Polynomial) -> Monomial:
    """Return the largest monomial that divides every term of a polynomial."""
    monomials = list(polynomial.terms)
    return tuple(
        number
        for number in sorted(set(monomials[0]))
        for _ in range(min(monomial.count(number) for monomial in monomials))
    )


def _without(monomial: Monomial, part: Monomial) -> Monomial | None:
    left = list(monomial)
    for number in part:
        if number not in left:
            return None
        left.remove(number)
    return tuple(left)
