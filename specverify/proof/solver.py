"""Decide the signs of polynomials under conditions with z3, which returns feasibility and rational points.

Linear conditions go to an incremental solver of linear arithmetic. If there are nonlinear conditions, the linear part
is solved first and its solution is tested on them. Only if the test fails, the expensive nonlinear solver is called.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, NamedTuple

from specverify.proof.polynomial import Polynomial
from specverify.proof.symbolic import NEGATIVE, POSITIVE, ZERO, sign

try:
    import z3  # type: ignore[import-untyped]
except ImportError as error:
    raise ImportError('specverify.proof needs z3: pip install "specverify-suite[proof]"') from error


__all__ = ["ANY", "Feasibility", "ProofOutOfTime", "SignCondition", "z3"]

QUESTION = 10.0
"""Time limit of one query in seconds; a query without an answer counts as satisfiable."""


class ProofOutOfTime(Exception):  # noqa: N818 - named for what it says of the proof
    """Raised when the time limit of a proof has passed."""


class SignCondition(NamedTuple):
    """The condition that the sign of a polynomial is one of ``signs``."""

    polynomial: Polynomial
    signs: frozenset[int]

    def met(self, point: dict[int, Fraction]) -> bool:
        """Return whether the condition holds at a point."""
        return sign(self.polynomial.at(point)) in self.signs


ANY = frozenset({NEGATIVE, ZERO, POSITIVE})
_RELATIONS: dict[frozenset[int], Callable[[Any], Any]] = {
    frozenset({NEGATIVE}): lambda value: value < 0,
    frozenset({ZERO}): lambda value: value == 0,
    frozenset({POSITIVE}): lambda value: value > 0,
    frozenset({NEGATIVE, ZERO}): lambda value: value <= 0,
    frozenset({ZERO, POSITIVE}): lambda value: value >= 0,
    frozenset({NEGATIVE, POSITIVE}): lambda value: value != 0,
    ANY: lambda value: z3.BoolVal(True),
    frozenset(): lambda value: z3.BoolVal(False),
}


class Feasibility:
    """A stack of conditions on unknowns, whose satisfiability z3 decides.

    ``axioms(unknown)`` returns the pmf (a row of the tables) to which an unknown belongs, and the conditions that the
    entries of the pmf always satisfy.
    """

    def __init__(self, axioms: Callable[[int], tuple[Any, tuple[SignCondition, ...]]], deadline: float) -> None:
        """Start without conditions. ``axioms`` is described at the class.

        A query after ``deadline``, a value of ``time.perf_counter``, raises ``ProofOutOfTime``.
        """
        self._axioms, self.deadline = axioms, deadline
        self._linear = z3.SolverFor("QF_LRA")
        self._higher: list[SignCondition] = []
        self._levels: list[tuple[int, set[Any]]] = []
        self._known: set[Any] = set()
        self._spoken: dict[SignCondition, Any] = {}
        self.queries = 0
        self.unanswered = 0

    def push(self, *conditions: SignCondition) -> None:
        """Add a group of conditions, which the next matching ``pop`` removes."""
        self._levels.append((len(self._higher), set(self._known)))
        self._linear.push()
        self._add(conditions)

    def pop(self) -> None:
        """Remove the conditions of the last ``push``."""
        higher, self._known = self._levels.pop()
        del self._higher[higher:]
        self._linear.pop()

    def mentioned(self) -> set[int]:
        """Return the unknowns of every pmf of which a current condition contains an unknown.

        A point that satisfies the conditions needs values for these unknowns only.
        """
        return {number for row in self._known for number in row.unknowns}

    def feasible(self, *conditions: SignCondition) -> bool:
        """Return whether some point satisfies the current conditions and ``conditions``; True if z3 cannot decide."""
        return self._asked(conditions, feasible_only=True) is not None

    def point(self, *conditions: SignCondition) -> dict[int, Fraction] | str | None:
        """Return a rational point that satisfies the current conditions and ``conditions``.

        Returns None if there is no such point, or a text with the reason if the solver cannot decide.
        """
        return self._asked(conditions)

    def _asked(
        self, conditions: tuple[SignCondition, ...], *, feasible_only: bool = False
    ) -> dict[int, Fraction] | str | None:
        if time.perf_counter() > self.deadline:
            raise ProofOutOfTime
        self.queries += 1
        self.push(*conditions)
        try:
            if self._checked(self._linear) == z3.unsat:
                return None
            if not self._higher:
                if feasible_only:
                    return {}
                return self._read(self._linear.model())
            guess = self._read(self._linear.model())
            if isinstance(guess, dict) and all(condition.met(_filled(guess, condition)) for condition in self._higher):
                return guess
            return self._nonlinear()
        finally:
            self.pop()

    def _nonlinear(self) -> dict[int, Fraction] | str | None:
        whole = z3.SolverFor("QF_NRA")
        whole.add(self._linear.assertions())
        whole.add([self._said(condition) for condition in self._higher])
        answer = self._checked(whole)
        if answer == z3.unsat:
            return None
        if answer == z3.unknown:
            self.unanswered += 1
            return "the solver gave up on a nonlinear question"
        return self._read(whole.model())

    def _checked(self, solver: Any) -> Any:
        left = self.deadline - time.perf_counter()
        if left <= 0:
            raise ProofOutOfTime
        solver.set("timeout", max(1, int(1000 * min(left, QUESTION))))
        answer = solver.check()
        if answer == z3.unknown and time.perf_counter() > self.deadline:
            raise ProofOutOfTime
        return answer

    def _add(self, conditions: Iterable[SignCondition]) -> None:
        for condition in conditions:
            for unknown in condition.polynomial.unknowns:
                group, axioms = self._axioms(unknown)
                if group not in self._known:
                    self._known.add(group)
                    self._linear.add([self._said(axiom) for axiom in axioms])
            if condition.polynomial.degree > 1:
                self._higher.append(condition)
            else:
                self._linear.add(self._said(condition))

    def _said(self, condition: SignCondition) -> Any:
        if condition not in self._spoken:
            self._spoken[condition] = _RELATIONS[condition.signs](z3_term(condition.polynomial))
        return self._spoken[condition]

    def _read(self, model: Any) -> dict[int, Fraction] | str:
        point = {}
        for item in model.decls():
            value = model[item]
            if not z3.is_rational_value(value):
                return "the solver's point is not rational"
            point[int(item.name()[1:])] = Fraction(value.numerator_as_long(), value.denominator_as_long())
        return point


def z3_term(polynomial: Polynomial) -> Any:
    """Return the polynomial as a term of z3 in the real unknowns x0, x1, ..."""
    terms = []
    for monomial, value in polynomial.terms.items():
        factors = [z3.Real(f"x{unknown}") for unknown in monomial]
        number = z3.RealVal(str(Fraction(value)))
        terms.append(z3.Product(number, *factors) if factors else number)
    return z3.Sum(terms) if terms else z3.RealVal(0)


def _filled(point: dict[int, Fraction], condition: SignCondition) -> dict[int, Fraction]:
    return {unknown: point.get(unknown, Fraction(0)) for unknown in condition.polynomial.unknowns}
