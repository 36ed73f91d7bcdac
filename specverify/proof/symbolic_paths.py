"""Enumerate every path of a program with symbolic probabilities; draws and undecided comparisons branch.

A path has a weight (a quotient of polynomials) and the conditions under which it exists. The conditions are the
comparisons on the path that have another possible answer, and that every drawn outcome has positive probability. The
law of the program is the sum of the weights of the paths whose conditions hold. Infeasible paths are omitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, Generic, NamedTuple, TypeVar

from specverify.laws.draws import NotAFunctionOfItsDraws
from specverify.proof.polynomial import Polynomial, common_monomial, primitive, quotient, unknown
from specverify.proof.solver import ANY, Feasibility, SignCondition
from specverify.proof.symbolic import NEGATIVE, POSITIVE, Real
from specverify.proof.symbolic_tables import UnknownTables
from specverify.reference import Pmf, Site, Tokens, check_pmf

Outcome = TypeVar("Outcome")


class NotAPmf(Exception):  # noqa: N818 - named for what it says of the subject
    """Raised if a program drew from weights that are no pmf for some values of the unknowns, the entries of p and q.

    ``point`` has such values: number of an unknown -> its value.
    """

    def __init__(self, sentence: str, point: dict[int, Fraction]) -> None:
        """Store the message ``sentence``, and ``point``: values of the unknowns at which the weights are no pmf."""
        super().__init__(sentence)
        self.point = point


class GuardedPath(NamedTuple, Generic[Outcome]):
    """A path of a program with symbolic pmfs, and the conditions under which it exists.

    ``outcome`` is its result, and ``weight`` its probability. ``drawn`` are the conditions that come from draws.
    """

    outcome: Outcome
    weight: Any
    conditions: tuple[SignCondition, ...]
    drawn: tuple[SignCondition, ...]


class PathStep:
    """One draw or comparison on the current path, and its outcomes that later paths will follow."""

    def __init__(
        self, question: Any, answers: list[tuple[Any, SignCondition | None]], weights: tuple[Any, ...]
    ) -> None:
        """Store a draw or comparison: the ``question``, and its possible outcomes ``answers``, the first is followed.

        Each outcome has its condition (None: always possible). ``weights`` are the probabilities of a draw, () for a
        comparison.
        """
        self.question, self.answers, self.weights, self.index = question, answers, weights, 0

    @property
    def answer(self) -> Any:
        """Return the outcome of this draw or comparison on the current path."""
        return self.answers[self.index][0]

    @property
    def condition(self) -> SignCondition | None:
        """Return the condition under which the outcome on the current path is possible; None if it always is."""
        return self.answers[self.index][1]


class PathDraws:
    """The draws and comparisons of one run: it first replays the given steps, then appends new ones."""

    def __init__(self, tables: UnknownTables, solver: Feasibility, steps: list[PathStep]) -> None:
        """Store ``steps``, which are replayed first; each new draw or comparison of the program is appended to them.

        The enumeration and its runs share this list. ``tables`` has the symbolic pmfs, and ``solver`` decides which
        answers are possible.
        """
        self.tables, self._solver, self._steps = tables, solver, steps
        self.depth = 0
        self._signs: dict[Polynomial, frozenset[int]] = {}

    def pmf(self, kind: str, text: Tokens) -> Pmf:
        """Return the pmf of the model ``kind`` (target or draft) after ``text``, as symbolic numbers of this run."""
        return self.tables.pmf(self, kind, text)

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return the outcome of the draw at ``site`` from ``pmf`` on this path.

        Raises ``NotAPmf`` if ``pmf`` is no pmf for some values of the unknowns.
        """
        weights = tuple(check_pmf(pmf, f"the pmf at {site}").tolist())
        form = tuple((w.numerator, w.denominators) if isinstance(w, Real) else w for w in weights)
        if self.depth == len(self._steps):
            self._open(PathStep((site, form), self._outcomes(weights, site), weights))
        step = self._follow((site, form), site)
        step.weights = weights
        return int(step.answer)

    def holds(self, polynomial: Polynomial, signs: frozenset[int]) -> bool:
        """Return whether the sign of ``polynomial`` is one of ``signs`` on this path; a sign is -1, 0 or 1.

        If the sign may or may not be one of them, this path follows one case, and a later path the other.
        """
        if polynomial.degree == 0:
            value = polynomial.terms.get((), 0)
            return (value > 0) - (value < 0) in signs
        atom, wanted = self._atom(polynomial, signs)
        known = self._signs.get(atom, ANY)
        if known <= wanted or not known & wanted:
            return known <= wanted
        if self.depth == len(self._steps):
            yes, no = SignCondition(atom, wanted), SignCondition(atom, ANY - wanted)
            answers: list[tuple[Any, SignCondition | None]] = [(True, yes)] if self._solver.feasible(yes) else []
            answers += [(False, no)] if not answers or self._solver.feasible(no) else []
            self._open(PathStep((atom, wanted), answers if len(answers) > 1 else [(answers[0][0], None)], ()))
        answer = bool(self._follow((atom, wanted), "a comparison").answer)
        self._signs[atom] = known & (wanted if answer else ANY - wanted)
        return answer

    def _atom(self, polynomial: Polynomial, signs: frozenset[int]) -> tuple[Polynomial, frozenset[int]]:
        """Return a simpler condition (polynomial, signs) that holds exactly where the given one does.

        The given condition is "the sign of ``polynomial`` is one of ``signs``". Constant factors, and factors that are
        known to be positive, are removed from the polynomial.
        """
        content, atom = primitive(polynomial)
        for number in set(common_monomial(atom)):
            factor = unknown(number)
            while self._signs.get(factor, ANY) == {POSITIVE} and (rest := quotient(atom, factor)):
                atom = rest
        return atom, frozenset(-item for item in signs) if content < 0 else signs

    def _open(self, step: PathStep) -> None:
        if not step.answers:
            raise NotAFunctionOfItsDraws(f"nothing can be drawn at {step.question[0]}")
        self._steps.append(step)
        enter(self._solver, step)

    def _follow(self, question: Any, where: Any) -> PathStep:
        step = self._steps[self.depth]
        if step.question != question:
            raise NotAFunctionOfItsDraws(f"step {self.depth} differs on replay: {where}")
        self.depth += 1
        if step.condition is not None:
            known = self._signs.get(step.condition.polynomial, ANY)
            self._signs[step.condition.polynomial] = known & step.condition.signs
        return step

    def _outcomes(self, weights: tuple[Any, ...], site: Site) -> list[tuple[Any, SignCondition | None]]:
        self._require_pmf(weights, site)
        answers: list[tuple[Any, SignCondition | None]] = []
        for outcome, weight in enumerate(weights):
            if not isinstance(weight, Real):
                answers += [(outcome, None)] if weight > 0 else []
                continue
            atom, signs = self._atom(weight.numerator, frozenset({POSITIVE}))
            condition = SignCondition(atom, signs)
            if self._signs.get(atom) == signs:
                answers.append((outcome, None))
            elif self._solver.feasible(condition):
                answers.append((outcome, condition))
        return answers

    def _require_pmf(self, weights: tuple[Any, ...], site: Site) -> None:
        excess = sum(weights, start=Fraction(-1))
        wrong = [] if not isinstance(excess, Real) and excess == 0 else [(excess, frozenset({NEGATIVE, POSITIVE}))]
        wrong += [(weight, frozenset({NEGATIVE})) for weight in weights]
        for value, signs in wrong:
            if not isinstance(value, Real):
                point: Any = {} if (value > 0) - (value < 0) in signs else None
            elif value.numerator in self.tables.never_negative and not value.denominators:
                continue
            else:
                atom, meant = self._atom(value.numerator, signs)
                point = self._solver.point(SignCondition(atom, meant))
            if isinstance(point, dict):
                raise NotAPmf(f"the weights at {site} are no probability vector", point)
            if point is not None:
                raise NotAFunctionOfItsDraws(f"the weights at {site} could not be shown to be a pmf: {point}")


def guarded_paths(
    program: Callable[[PathDraws], Outcome], tables: UnknownTables, solver: Feasibility
) -> Iterator[GuardedPath[Outcome]]:
    """Yield every feasible path of ``program`` once, depth first.

    The pmfs are those of ``tables``; ``solver`` decides which paths are feasible.
    """
    for outcome, steps in runs_of_paths(program, tables, solver):
        weight: Any = Fraction(1)
        conditions: list[SignCondition] = []
        drawn: list[SignCondition] = []
        for step in steps:
            if step.weights:
                weight = step.weights[step.answer] * weight
            if step.condition is not None:
                conditions.append(step.condition)
                drawn += [step.condition] if step.weights else []
        yield GuardedPath(outcome, weight, tuple(conditions), tuple(drawn))


def runs_of_paths(
    program: Callable[[PathDraws], Outcome], tables: UnknownTables, solver: Feasibility
) -> Iterator[tuple[Outcome, list[PathStep]]]:
    """Yield the outcome and the steps of every feasible path of ``program`` once, depth first.

    The pmfs are those of ``tables``; ``solver`` decides which paths are feasible. The same list of steps is yielded
    each time and changes from path to path.
    """
    steps: list[PathStep] = []
    while True:
        run = PathDraws(tables, solver, steps)
        outcome = program(run)
        if run.depth < len(steps):
            raise NotAFunctionOfItsDraws(f"step {run.depth} does not occur on replay")
        yield outcome, steps
        while steps and steps[-1].index == len(steps[-1].answers) - 1:
            leave(solver, steps.pop())
        if not steps:
            return
        leave(solver, steps[-1])
        steps[-1].index += 1
        enter(solver, steps[-1])


def enter(solver: Feasibility, step: PathStep) -> None:
    """Add to the solver the condition of the outcome that the path follows at ``step``."""
    if step.condition is not None:
        solver.push(step.condition)


def leave(solver: Feasibility, step: PathStep) -> None:
    """Remove the condition of ``step`` from the solver."""
    if step.condition is not None:
        solver.pop()
