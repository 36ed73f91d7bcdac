"""Proofs that no point satisfies some conditions, as sums that can be multiplied out.

Each condition is written as g > 0, g >= 0 or e = 0. Linear arithmetic over the rationals searches for ``sum of c *
product of g's + sum of h * e = 0`` with c >= 0 and a positive term; then the conditions contradict each other. Products
of one condition are tried first, then of two, then of three. A contradiction that needs a higher degree is not found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from math import prod
from typing import Any

from specverify.proof.polynomial import ONE, Monomial, Polynomial
from specverify.proof.solver import SignCondition, z3
from specverify.proof.symbolic import NEGATIVE, POSITIVE, ZERO

MOST_FACTORS = 3
MOST_PRODUCTS = 4000
MOST_CASES = 20
"""Largest depth to which inequations ``!=`` are split into ``<`` and ``>``."""
Written = dict[str, Any]
_RELATIONS = {
    frozenset({NEGATIVE}): (Fraction(-1), True),
    frozenset({NEGATIVE, ZERO}): (Fraction(-1), False),
    frozenset({POSITIVE}): (Fraction(1), True),
    frozenset({ZERO, POSITIVE}): (Fraction(1), False),
}
_INEQUATION = frozenset({NEGATIVE, POSITIVE})


class Contradictions:
    """Searches for contradictions among conditions on polynomials, and caches what it found.

    ``number_of`` maps a polynomial to its index in the certificate.
    """

    def __init__(self, number_of: Callable[[Polynomial], int]) -> None:
        """Start with an empty cache of results. ``number_of`` is described at the class."""
        self._number_of = number_of
        self._known: dict[frozenset[SignCondition], tuple[Written, list[SignCondition]] | None] = {}

    def find(self, conditions: Sequence[SignCondition]) -> Written | None:
        """Return a contradiction among ``conditions`` as JSON data of a certificate, or None if none was found.

        The contradiction refers to conditions by their positions in ``conditions``.
        """
        relevant = _relevant(conditions)
        key = frozenset(conditions[index] for index in relevant)
        if key not in self._known:
            self._known[key] = self._found([conditions[index] for index in relevant])
        known = self._known[key]
        return None if known is None else _renumbered(known[0], _positions(known[1], conditions))

    def _found(self, conditions: list[SignCondition]) -> tuple[Written, list[SignCondition]] | None:
        result = next(filter(None, (self._sum(conditions, factors) for factors in range(1, MOST_FACTORS + 1))), None)
        if result is None:
            result = self._by_cases(conditions)
        return None if result is None else (result, conditions)

    def _by_cases(self, conditions: list[SignCondition]) -> Written | None:
        for index, condition in enumerate(conditions):
            if condition.signs != _INEQUATION:
                continue
            rest = [*conditions[:index], *conditions[index + 1 :]]
            parts = {}
            for name, sign in (("below", NEGATIVE), ("above", POSITIVE)):
                case = [*rest, SignCondition(condition.polynomial, frozenset({sign}))]
                inner = self._found(case)
                if inner is None:
                    break
                count = len(conditions)
                places = [*range(index), *range(index + 1, count), *range(count, count + MOST_CASES)]
                parts[name] = _renumbered(inner[0], places)
            else:
                return {"split": index, **parts}
        return None

    def _sum(self, conditions: list[SignCondition], factors: int) -> Written | None:
        upwards = [
            (index, condition.polynomial.times(factor), strict)
            for index, condition in enumerate(conditions)
            if condition.signs in _RELATIONS
            for factor, strict in [_RELATIONS[condition.signs]]
        ]
        equalities = [(index, item.polynomial) for index, item in enumerate(conditions) if item.signs == {ZERO}]
        products = list(_products(upwards, factors))
        if len(products) > MOST_PRODUCTS or not products:
            return None
        degree = max(polynomial.degree for _, polynomial, _ in products)
        cofactors = [
            (index, monomial, Polynomial({monomial: 1}) * equality)
            for index, equality in equalities
            for monomial in _monomials(conditions, max(0, degree - equality.degree))
        ]
        shares = [z3.Real(f"c{place}") for place in range(len(products))]
        multiples = [z3.Real(f"h{place}") for place in range(len(cofactors))]
        sums: dict[Monomial, list[Any]] = {}
        parts = [*zip(shares, (item[1] for item in products), strict=True)]
        parts += zip(multiples, (item[2] for item in cofactors), strict=True)
        for variable, polynomial in parts:
            for monomial, value in polynomial.terms.items():
                sums.setdefault(monomial, []).append(z3.RealVal(str(Fraction(value))) * variable)
        solver = z3.SolverFor("QF_LRA")
        solver.add([share >= 0 for share in shares])
        solver.add([z3.Sum(terms) == 0 for terms in sums.values()])
        positive = [share for share, (_, _, strict) in zip(shares, products, strict=True) if strict]
        if not positive:
            return None
        solver.add(z3.Sum(positive) == 1)
        if solver.check() != z3.sat:
            return None
        model = solver.model()
        terms = [
            [str(value), list(indices)]
            for share, (indices, _, _) in zip(shares, products, strict=True)
            if (value := _value(model, share))
        ]
        by_equality: dict[int, dict[Monomial, Fraction]] = {}
        for multiple, (index, monomial, _) in zip(multiples, cofactors, strict=True):
            if value := _value(model, multiple):
                by_equality.setdefault(index, {})[monomial] = value
        used = [[self._number_of(Polynomial(cofactor)), index] for index, cofactor in by_equality.items()]
        return {"terms": terms, "equalities": used}


def _value(model: Any, variable: Any) -> Fraction:
    value = model.eval(variable, model_completion=True)
    return Fraction(value.numerator_as_long(), value.denominator_as_long())


def _products(
    upwards: Sequence[tuple[int, Polynomial, bool]], factors: int
) -> Iterator[tuple[tuple[int, ...], Polynomial, bool]]:
    yield (), ONE, True
    for count in range(1, factors + 1):
        for chosen in combinations_with_replacement(upwards, count):
            polynomial = prod((item[1] for item in chosen), start=ONE)
            yield tuple(item[0] for item in chosen), polynomial, all(item[2] for item in chosen)


def _monomials(conditions: Sequence[SignCondition], degree: int) -> Iterator[Monomial]:
    unknowns = sorted({number for condition in conditions for number in condition.polynomial.unknowns})
    for size in range(degree + 1):
        yield from combinations_with_replacement(unknowns, size)


def _relevant(conditions: Sequence[SignCondition]) -> list[int]:
    """Return, in ascending order, the positions of the last condition and of those that can contradict it.

    The search for a contradiction uses only these conditions, which makes it fast. They share unknowns with the last
    one, directly or through other conditions, or have no unknowns.
    """
    unknowns = set(conditions[-1].polynomial.unknowns)
    left, taken = dict(enumerate(conditions[:-1])), [len(conditions) - 1]
    while True:
        near = [
            place for place, item in left.items() if not item.polynomial.unknowns or unknowns & item.polynomial.unknowns
        ]
        if not near:
            return sorted(taken)
        for place in near:
            unknowns |= left.pop(place).polynomial.unknowns
            taken.append(place)


def _positions(shape: Sequence[SignCondition], conditions: Sequence[SignCondition]) -> list[int]:
    places = {condition: place for place, condition in enumerate(conditions)}
    return [*(places[condition] for condition in shape), *range(len(conditions), len(conditions) + MOST_CASES)]


def _renumbered(written: Written, places: Sequence[int]) -> Written:
    """Return the contradiction ``written`` with each index i of a condition replaced by ``places[i]``.

    Each split into cases adds a condition, whose index follows those of the given conditions; ``places`` has entries
    for these indices too.
    """
    if "split" in written:
        cases = {name: _renumbered(written[name], places) for name in ("below", "above")}
        return {"split": places[written["split"]], **cases}
    return {
        "terms": [[value, [places[index] for index in indices]] for value, indices in written["terms"]],
        "equalities": [[cofactor, places[index]] for cofactor, index in written["equalities"]],
    }
