"""Decide whether a sum of conditional weights is zero, or nonnegative, for all values of the unknowns.

The space of the unknowns is split into cells by the sign of one condition after another, until in each cell the
conditions of every weight are decided. In a cell the sum is one quotient of polynomials. If it is not the zero
polynomial, the solver searches the cell for a point where the sum is not zero. There may be none, because a cell can
lie in a plane.

The condition that a drawn outcome has positive probability needs no cells if the weight contains that probability as a
factor: the weight is then 0 where the condition fails. This requires that no denominator vanishes there, which is
checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from specverify.proof.polynomial import Polynomial, primitive, quotient
from specverify.proof.solver import ANY, Feasibility, SignCondition
from specverify.proof.symbolic import NEGATIVE, POSITIVE, ZERO, Real, number

LARGEST_DENOMINATOR = 16


class ConditionalWeight(NamedTuple):
    """A weight that counts only where its conditions hold.

    The conditions in ``drawn``, which are also in ``conditions``, only state that a drawn outcome has positive
    probability.
    """

    weight: Any
    conditions: tuple[SignCondition, ...] = ()
    drawn: tuple[SignCondition, ...] = ()


class Failure(NamedTuple):
    """A point at which the statement is false; or no point (None), and the reason why the statement is undecided."""

    point: dict[int, Fraction] | None
    reason: str = ""


class Decided(NamedTuple):
    """The number of cells examined, and the first failure (None if there is none)."""

    cells: int
    failure: Failure | None


NONZERO, BELOW_ZERO = frozenset({NEGATIVE, POSITIVE}), frozenset({NEGATIVE})


def decide_sign(
    terms: Iterable[ConditionalWeight], solver: Feasibility, forbidden: frozenset[int] = NONZERO
) -> Decided:
    """Decide whether the sum of ``terms`` has a sign in ``forbidden`` for some values of the unknowns.

    ``solver`` has the conditions on the unknowns. Returns the number of cells examined, and the first failure (None if
    the sum never has such a sign).
    """
    cells = 0
    lean = [_without_needless(term._replace(weight=free_number(term.weight)), solver) for term in terms]
    for total in _cells(_merged(lean), {}, solver):
        cells += 1
        if not isinstance(total, Real):
            if (total > 0) - (total < 0) in forbidden:
                return Decided(cells, Failure(smallest_point(solver), "the solver has no rational point of this cell"))
            continue
        content, atom = primitive(total.numerator)  # denominators are positive
        wrong = SignCondition(atom, frozenset(-sign for sign in forbidden) if content < 0 else forbidden)
        result = solver.point(wrong)
        if result is not None:
            point = smallest_point(solver, wrong)
            return Decided(cells, Failure(point, result if isinstance(result, str) else "no rational point was found"))
    return Decided(cells, None)


def smallest_point(solver: Feasibility, *conditions: SignCondition) -> dict[int, Fraction] | None:
    """Return a rational point that satisfies ``conditions`` and those in ``solver``, with values as simple as possible.

    The unknowns are fixed one after the other, each at a feasible fraction with the smallest denominator. Returns None
    if no such point was found.
    """
    solver.push(*conditions)
    pushed = 1
    try:
        result = solver.point()
        if result is None or isinstance(result, str):
            result = {unknown: Fraction(0) for unknown in solver.mentioned()}
            certain = False
        else:
            result = {unknown: Fraction(0) for unknown in solver.mentioned()} | result
            certain = True
        fixed: dict[int, Fraction] = {}
        for unknown in sorted(result):
            for value in (*_simple(), *([result[unknown]] if certain else [])):
                at = SignCondition(_difference_from(unknown, value), frozenset({ZERO}))
                answer = solver.point(at)
                if isinstance(answer, dict):
                    result, certain, fixed[unknown] = result | answer, True, value
                    solver.push(at)
                    pushed += 1
                    break
            else:
                return None
        return fixed
    finally:
        for _ in range(pushed):
            solver.pop()


def _cells(
    terms: list[ConditionalWeight], facts: dict[Polynomial, frozenset[int]], solver: Feasibility
) -> Iterator[Any]:
    """Yield, for each cell, the sum of the weights of ``terms`` that count there.

    While a cell is yielded, its conditions are in ``solver``. ``facts`` maps polynomials to the signs that are still
    possible for them in the cell that is split.
    """
    alive = _merged(
        [
            term._replace(conditions=left)
            for term in terms
            if (left := conditions_left(term.conditions, facts)) is not None
        ]
    )
    asked = Counter(condition.polynomial for term in alive for condition in term.conditions)
    if not asked:
        yield _added([term.weight for term in alive])
        return
    atom = max(asked, key=lambda polynomial: (-polynomial.degree, asked[polynomial]))
    answers = {condition.signs for term in alive for condition in term.conditions if condition.polynomial == atom}
    for signs in sign_classes(facts.get(atom, ANY), answers):
        if solver.feasible(SignCondition(atom, signs)):
            solver.push(SignCondition(atom, signs))
            yield from _cells(alive, {**facts, atom: signs}, solver)
            solver.pop()


def conditions_left(
    conditions: Iterable[SignCondition], facts: Mapping[Polynomial, frozenset[int]]
) -> tuple[SignCondition, ...] | None:
    """Return those of ``conditions``, in order, that ``facts`` leave undecided.

    ``facts`` maps a polynomial to the signs that are still possible for it; any other polynomial may have every sign.
    Returns None if ``facts`` contradict one of the conditions.
    """
    left = []
    for condition in conditions:
        known = facts.get(condition.polynomial, ANY)
        if not known & condition.signs:
            return None
        if not known <= condition.signs:
            left.append(condition)
    return tuple(left)


def _without_needless(term: ConditionalWeight, solver: Feasibility) -> ConditionalWeight:
    """Return ``term`` without the conditions of draws that are redundant.

    The condition of a draw is that its outcome has positive probability. It is redundant in two cases: the comparisons
    of the term imply it, or this probability is a factor of the weight, so that the weight is 0 where the condition
    fails. ``solver`` proves this from comparisons only, because the conditions of other draws may be removed too.
    """
    # Where a removed condition fails, the weight is 0: of the first impossible draw of the path, the probability is
    # exactly 0 and not negative, because the outcome was drawn from a pmf, and it is a factor of the weight.
    compared = [condition for condition in term.conditions if condition not in term.drawn]
    solver.push(*compared)
    needed = [
        condition
        for condition in term.conditions
        if condition in compared
        or (
            not _vanishes_with(condition.polynomial, term.weight, solver)
            and solver.feasible(SignCondition(condition.polynomial, ANY - condition.signs))
        )
    ]
    solver.pop()
    return term._replace(conditions=tuple(needed))


def _vanishes_with(chance: Polynomial, weight: Any, solver: Feasibility) -> bool:
    """Return whether it is shown that ``weight`` is 0 wherever ``chance`` is 0, under the conditions of ``solver``.

    It is shown if ``chance``, the probability of an outcome, divides the numerator of ``weight``, and all denominators
    are positive where ``chance`` is 0.
    """
    if not isinstance(weight, Real) or quotient(weight.numerator, chance) is None:
        return False
    none, wrong = SignCondition(chance, frozenset({ZERO})), frozenset({NEGATIVE, ZERO})
    return not any(solver.feasible(none, SignCondition(item, wrong)) for item in dict.fromkeys(weight.denominators))


def _merged(terms: list[ConditionalWeight]) -> list[ConditionalWeight]:
    """Return ``terms`` merged into fewer terms with the same sum.

    The weights of terms with equal conditions are added, and a sum of 0 is removed. Then terms with equal weights and
    complementary conditions are joined (``_joined``). This is repeated until no terms can be joined.
    """
    while True:
        sums: dict[frozenset[SignCondition], list[Any]] = {}
        for term in terms:
            sums.setdefault(frozenset(term.conditions), []).append(term.weight)
        added = {conditions: _added(weights) for conditions, weights in sums.items()}
        added = {conditions: weight for conditions, weight in added.items() if isinstance(weight, Real) or weight}
        joined = _joined(added)
        terms = [ConditionalWeight(weight, tuple(conditions)) for conditions, weight in joined]
        if len(joined) == len(added):
            return terms


def _joined(terms: dict[frozenset[SignCondition], Any]) -> list[tuple[frozenset[SignCondition], Any]]:
    """Join pairs of terms with equal weights whose conditions differ only in the sign of one polynomial.

    ``terms`` maps conditions to weights. A joined pair has the weight once, with both signs permitted. Each term is
    joined at most once; terms without a partner are returned unchanged, after the joined ones.
    """
    waiting: dict[Any, frozenset[SignCondition]] = {}
    joined: list[tuple[frozenset[SignCondition], Any]] = []
    taken: set[frozenset[SignCondition]] = set()
    for conditions, weight in terms.items():
        form = (weight.numerator, weight.denominators) if isinstance(weight, Real) else weight
        for condition in conditions:
            rest = conditions - {condition}
            other = waiting.get((form, rest, condition.polynomial))
            if other is None or other in taken:
                continue
            signs = next(iter(other - rest)).signs
            if not signs & condition.signs:
                whole = signs | condition.signs
                joined.append((rest if whole == ANY else rest | {SignCondition(condition.polynomial, whole)}, weight))
                taken |= {other, conditions}
                break
        else:
            waiting.update({(form, conditions - {item}, item.polynomial): conditions for item in conditions})
    return joined + [(conditions, weight) for conditions, weight in terms.items() if conditions not in taken]


def sign_classes(known: frozenset[int], answers: set[frozenset[int]]) -> list[frozenset[int]]:
    """Return ``known``, the possible signs of a polynomial, divided into as few classes as ``answers`` permit.

    Each of ``answers`` is a set of signs, such as {0, 1} for "at least 0". Two signs are in one class if no answer
    contains only one of them.
    """
    groups: dict[tuple[bool, ...], set[int]] = {}
    for sign in sorted(known):
        groups.setdefault(tuple(sign in signs for signs in answers), set()).add(sign)
    return [frozenset(group) for group in groups.values()]


def _added(weights: list[Any]) -> Any:
    """Return the sum of weights. Weights with equal denominators, of which there are many, are added first."""
    groups: dict[Any, Any] = {}
    for weight in weights:
        key = weight.denominators if isinstance(weight, Real) else ()
        groups[key] = groups.get(key, Fraction(0)) + weight
    return sum(groups.values(), start=Fraction(0))


class _Nowhere:
    """The ``run`` of symbolic numbers that are used outside of any run of the program.

    Such a number can be added and multiplied; a comparison raises ``AssertionError``.
    """

    def holds(self, polynomial: Polynomial, signs: frozenset[int]) -> bool:
        raise AssertionError(f"is {polynomial.terms} in {set(signs)}? compared outside of a run")


_NOWHERE = _Nowhere()


def free_number(weight: Any) -> Any:
    """Return ``weight``, a number or a polynomial, as a number that does not belong to any run.

    Numbers of different runs cannot be added; free numbers can.
    """
    if isinstance(weight, Polynomial):
        return number(_NOWHERE, weight)
    return number(_NOWHERE, weight.numerator, weight.denominators) if isinstance(weight, Real) else weight


def _difference_from(unknown: int, value: Fraction) -> Polynomial:
    return Polynomial({(unknown,): 1, (): -value} if value else {(unknown,): 1})


def _simple() -> Iterator[Fraction]:
    yield from (Fraction(0), Fraction(1))
    for denominator in range(2, LARGEST_DENOMINATOR + 1):
        for numerator in range(1, denominator):
            if Fraction(numerator, denominator).denominator == denominator:
                yield Fraction(numerator, denominator)
