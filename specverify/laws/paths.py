"""Enumerate every path of a program of draws: each draw gets each of its outcomes in turn, depth first.

The number of draws must be finite, every draw declared, and the program deterministic given its outcomes. If a replay
makes another draw, the error names the site that changed.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from specverify.base.arguments import check_callable, check_integer, check_seed
from specverify.laws.draws import MOST_DECISIONS, Decision, NotAFunctionOfItsDraws, Question, support
from specverify.laws.rounding import FLOAT64, NEGLIGIBLE, Rounding, collected, drew
from specverify.reference import Draws, Pmf, Sampled, Site, as_pmf, check_pmf

Outcome = TypeVar("Outcome")

PROBES = 16
"""Number of random runs from which the number of paths is estimated."""
FAR, VERY_FAR = 100, 400
"""Two random runs decide that a program has at most N paths if their estimates are at most N / FAR, and one run if its
estimate is at most N / VERY_FAR."""


class Path(NamedTuple, Generic[Outcome]):
    """One run of a program: its result, its probability (``weight``), and its draws.

    ``choices`` are the outcomes of the draws, ``decisions`` their sites, pmfs and outcomes. ``rounding`` has the
    observations from which the error of ``weight`` is bounded.
    """

    outcome: Outcome
    weight: Any
    choices: tuple[int, ...]
    decisions: tuple[Decision, ...]
    rounding: Rounding = Rounding()


class Undecided(NamedTuple):
    """The result of a run that is not yet determined, because some draws were never read.

    ``outcomes`` has a pair for each possible result of the run: the result, and its probability given the path.
    """

    outcomes: tuple[tuple[Any, Any], ...]


RARE = FLOAT64 / 2
"""A path with float weights is not followed if its probability is below this; one rounding of the law exceeds it."""


LONG, RUNS_OF_LONG = 24, 40
"""A path that is left out after ``LONG`` or more draws counts as ``RUNS_OF_LONG`` runs.

It is mostly a path of a loop that draws until a token is accepted. Such loops have more paths than any limit, and their
runs take long.
"""


class RunBudget:
    """Count the runs of an enumeration, and the paths left out because they are rare, against a limit."""

    def __init__(self, limit: int) -> None:
        """Start without runs; ``limit`` is the most runs."""
        self._limit, self._taken = limit, 0
        self.lost: list[Any] = []
        """The probabilities of the paths that were left out because they are rare."""

    @property
    def is_over(self) -> bool:
        """Return whether no further path may be followed."""
        return self._taken >= self._limit

    def follow(self) -> None:
        """Count the run of a path."""
        self._taken += 1

    def leave_out(self, weight: Any, draws: int) -> bool:
        """Count a path of probability ``weight`` that is left out after ``draws`` draws; return whether to continue."""
        self.lost.append(weight)
        self._taken += 1 if draws < LONG else RUNS_OF_LONG
        return not self.is_over


class _TooRare(BaseException):
    """Raised if the remaining probability of a path is too small for floats.

    An example is a path with many iterations of a loop.
    """


class _OpenDraw:
    """A draw on the current path, and the outcome that the path follows."""

    __slots__ = ("_before", "decision", "index", "outcome", "possible", "question", "weight")

    def __init__(self, question: Question, index: int, before: Any) -> None:
        """Store the draw ``question`` and follow its possible outcome ``index``.

        ``before`` is the probability of the path up to this draw.
        """
        self.question, self.possible, self._before = question, question.possible, before
        self.follow(index)

    def follow(self, index: int) -> None:
        """Make the path follow possible outcome number ``index``.

        Sets ``outcome``, ``weight`` (the probability of the path up to and including this outcome) and ``decision``.
        """
        self.index, self.outcome, weights = index, self.possible[index], self.question.weights
        self.weight = self._before * weights[self.outcome]
        self.decision = Decision(self.question.site, weights, self.outcome)

    def pass_over(self) -> float:
        """Move to the first outcome, from the current one on, whose path has at least the probability ``RARE``.

        If there is none, move to the last outcome. Returns the sum of the probabilities of the outcomes that are
        skipped.
        """
        weights = self._before * self.question.masses[self.outcome :]
        shown = np.flatnonzero(weights >= RARE)
        ahead = int(shown[0]) if shown.size else self.possible[-1] - self.outcome
        self.follow(bisect_left(self.possible, self.outcome + ahead))
        return float(weights[:ahead].sum())


class Enumerated:
    """An interpreter that follows one path: it repeats recorded outcomes, then takes the first one of each new draw."""

    def __init__(self, branches: list[_OpenDraw], first: tuple[int, ...] = ()) -> None:
        """Follow the path of ``branches``, the draws made so far; each new draw is appended to this shared list.

        ``first`` fixes the outcomes of the first draws.
        """
        self._branches, self._first = branches, first
        self.depth = 0
        self.failure: Exception | None = None
        """The error of a draw; kept here because the program may catch it."""
        self.too_rare = False
        """Whether the path is too rare to be followed; kept here because the program may catch ``_TooRare``."""
        self.passed_over: list[Any] = []
        """For each draw with outcomes that were skipped because they are too rare: their total probability."""

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return the outcome of the draw at ``site`` from ``pmf`` on the current path.

        Raises ``NotAFunctionOfItsDraws`` if a replay makes another draw than the first run.
        """
        try:
            pmf = as_pmf(pmf)
            if self.depth < len(self._branches):
                branch = self._branches[self.depth]
                branch.question.check_repeated(pmf, site)
            else:
                branch = self._opened(pmf, site)
        except Exception as error:
            self.failure = error
            raise
        self.depth += 1
        drew(len(branch.possible), pmf.dtype)
        return branch.outcome

    def _opened(self, pmf: Pmf, site: Site) -> _OpenDraw:
        """Add the draw at ``site`` from ``pmf`` to the path and return it.

        Raises ``_TooRare`` if the probability of the path so far is negligible.
        """
        question, fixed = Question(pmf, site, self.depth), self._first[self.depth : self.depth + 1]
        index, before = question.possible.index(*fixed) if fixed else 0, _weight(self._branches)
        if self.too_rare or _is_rare(before):
            self.too_rare = True
            raise _TooRare
        branch = _OpenDraw(question, index, before)
        if not fixed and _is_rare(branch.weight) and len(branch.possible) > 1:
            self.passed_over.append(branch.pass_over())
        self._branches.append(branch)
        return branch


def paths(
    program: Callable[[Draws], Outcome],
    first: tuple[int, ...] = (),
    least: Callable[[], Any] | None = None,
    rare: Callable[[Any, int], bool] | None = None,
) -> Iterator[Path[Outcome]]:
    """Yield every path of ``program`` once, depth first. The consumer may stop early by closing the generator.

    * With ``first``, only paths whose first draws have these outcomes are enumerated.
    * With ``least``, a path whose probability is known to be at most ``least()`` is skipped without a run.
    * A path with probability below ``RARE`` is not followed. ``rare`` gets this probability and the number of draws,
      and returns whether to continue (``RunBudget.leave_out``). Without ``rare`` the enumeration continues, but raises
      ``NotAFunctionOfItsDraws`` after many such paths in a row.
    * A path that ends in an error is skipped if its probability is a float below the rounding of float64.
    """
    check_callable(program, "the program")
    branches: list[_OpenDraw] = []
    in_a_row = 0
    while True:
        draws, passed = Enumerated(branches, first), False
        try:
            with collected() as seen:
                outcome = program(draws)
        except (_TooRare, Exception):
            passed = draws.too_rare or (draws.failure is None and _happens_by_rounding(branches))
            if not passed:
                raise
        in_a_row = in_a_row + 1 if draws.too_rare else 0
        if in_a_row and not _goes_on(branches, rare, in_a_row):
            return
        if rare is not None and not all(rare(weight, draws.depth) for weight in draws.passed_over):
            return
        if not passed and not draws.too_rare:
            if draws.failure is not None:
                raise draws.failure
            if draws.depth < len(branches):
                branches[draws.depth].question.check_made(draws.depth)
            decisions = tuple([branch.decision for branch in branches])
            choices = tuple([branch.outcome for branch in branches])
            yield Path(outcome, _weight(branches), choices, decisions, seen.rounding())
        if not _next_branch(branches, first, least, rare):
            return


def _is_rare(weight: Any) -> bool:
    return isinstance(weight, float) and weight < RARE


def _goes_on(branches: list[_OpenDraw], rare: Callable[[Any, int], bool] | None, in_a_row: int) -> bool:
    """Return whether an enumeration goes on after it skipped a path because its probability is negligible.

    If the caller passed the function ``rare``, it decides; its argument is the probability of ``branches``, the skipped
    path. Otherwise the result is True, but after too many skipped paths in a row (``in_a_row``)
    ``NotAFunctionOfItsDraws`` is raised.
    """
    if rare is not None:
        return rare(_weight(branches), len(branches))
    if in_a_row > MOST_DECISIONS:
        site = branches[-1].question.site
        raise NotAFunctionOfItsDraws(f"more than {MOST_DECISIONS} paths have no end in sight, the last at {site}")
    return True


def heaviest_paths(
    program: Callable[[Draws], Outcome], share: Callable[[Outcome], Any], number: int, most: int
) -> list[tuple[Any, Path[Outcome]]]:
    """Return the ``number`` heaviest paths of ``program`` as pairs (weight, path), the heaviest first.

    The weight is the probability of the path, times ``share(outcome)``, a factor of at most 1 for the result of the
    path. Paths of weight 0 are left out. At most ``most`` paths run; those that are too improbable to be among the
    heaviest do not.
    """
    result: list[tuple[Any, Path[Outcome]]] = []

    def least() -> Any:
        return result[-1][0] if len(result) == number else 0

    for path in islice(paths(program, least=least), most):
        part = share(path.outcome)
        if part:
            result = sorted([*result, (path.weight * part, path)], key=lambda item: -item[0])[:number]
    return result


def _weight(branches: list[_OpenDraw]) -> Any:
    return branches[-1].weight if branches else 1


def _next_branch(
    branches: list[_OpenDraw],
    first: tuple[int, ...],
    least: Callable[[], Any] | None,
    rare: Callable[[Any, int], bool] | None,
) -> bool:
    """Move ``branches``, the current path, to the next path to follow, depth first; return False if there is none.

    Three kinds of paths are skipped: those that do not begin with the outcomes ``first``, those with at most the
    probability ``least()``, and those with a negligible probability. For the last kind ``rare(probability, draws)`` is
    called; if it returns False, so does this function.
    """
    while _advanced(branches, first):
        branch, lost = branches[-1], 0.0
        if _is_rare(branch.weight):
            lost = branch.pass_over()
            if _is_rare(branch.weight):
                lost += branch.weight
        if lost and rare is not None and not rare(lost, len(branches)):
            return False
        if not _is_rare(branch.weight) and (least is None or branch.weight > least()):
            return True
    return False


def _advanced(branches: list[_OpenDraw], first: tuple[int, ...]) -> bool:
    while len(branches) > len(first) and branches[-1].index == len(branches[-1].possible) - 1:
        branches.pop()
    if len(branches) <= len(first):
        return False
    branches[-1].follow(branches[-1].index + 1)
    return True


def _happens_by_rounding(branches: list[_OpenDraw]) -> bool:
    """Return whether the path ``branches`` may be impossible in exact arithmetic, and exist by rounding alone.

    This is assumed if its probability is a float below ``NEGLIGIBLE``.
    """
    weight = _weight(branches)
    return isinstance(weight, float) and weight < NEGLIGIBLE


def first_outcomes(program: Callable[[Draws], Any], depth: int) -> list[tuple[int, ...]]:
    """Return the outcomes of the first ``depth`` draws of ``program``, one tuple for each set of paths that share them.

    A path with fewer draws has a shorter tuple. Every path is in one set, except those too rare to follow.
    """
    check_integer(depth, "the depth", least=0)
    shares: list[tuple[int, ...]] = [()]
    for _ in range(depth):
        longer = []
        for share in shares:
            path = next(paths(program, share), None)
            if path is None:
                continue
            ends = len(path.decisions) <= len(share)
            outcomes = () if ends else [j for j, mass in enumerate(path.decisions[len(share)].weights) if mass > 0]
            longer += [share] if ends else [(*share, outcome) for outcome in outcomes]
        shares = longer
    return shares


def outcomes_of(end: Any) -> tuple[tuple[Any, Any], ...]:
    """Return pairs (result, probability given the path) for ``end``, the value that a run returned.

    There is one pair, with probability 1, unless the run left draws unread (``Undecided``).
    """
    return end.outcomes if isinstance(end, Undecided) else ((end, 1),)


def estimated_paths(
    program: Callable[[Draws], Any], probes: int = PROBES, seed: int = 0, most: float = math.inf
) -> float:
    """Return an unbiased estimate of the number of paths: the mean product of branching factors over random probes.

    Each of ``probes`` runs of ``program`` takes every branch with equal probability, by ``seed`` (Knuth 1975). If the
    first run meets no branch, the result is 1. ``most`` is a number with which the caller compares the result. If it is
    given, runs are left out in three cases:

    * The estimate exceeds ``most`` without them: the result is a lower bound of the estimate, greater than ``most``.
    * The product is at most ``most`` / ``VERY_FAR`` in the first run: the result is this product.
    * The product is at most ``most`` / ``FAR`` in the first two runs: the result is the mean of these two.
    """
    check_integer(probes, "the number of probes")
    check_seed(seed)
    rng = np.random.default_rng(seed)
    products = list[float]()
    for _ in range(probes):
        products.append(_probe(program, rng))
        if products == [1]:
            return 1.0  # the first run met no branch
        if sum(products) / probes > most:
            break
        if products[0] <= most / VERY_FAR < math.inf:
            return products[0]
        if len(products) == 2 and max(products) <= most / FAR < math.inf:
            return sum(products) / 2
    return sum(products) / probes


def has_more_paths(program: Callable[[Draws], Any], number: int, seed: int = 0) -> bool:
    """Return whether ``program`` almost surely has more than ``number`` paths; it makes at most ``PROBES`` runs.

    A random run takes a path with probability 1 / (product of its branching factors). If there are at most ``number``
    paths, the product exceeds ``2 * number`` with probability at most 1/2. ``seed`` selects the runs. The result is
    True if the product exceeds this number in every run. Raises what the program raises.
    """
    check_seed(seed)
    rng = np.random.default_rng(seed)
    for _ in range(PROBES):
        probe = Probe(rng)
        program(probe)
        if probe.product <= 2 * number:
            return False
    return True


class Probe:
    """An interpreter that takes each possible branch with equal probability."""

    def __init__(self, rng: np.random.Generator) -> None:
        """Choose branches by ``rng``."""
        self._uniform = Sampled(rng)
        self.depth = 0
        self.product = 1.0
        """The product of the numbers of possible outcomes of all draws so far."""

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return one of the possible outcomes of ``pmf``, each with equal probability."""
        possible = support(check_pmf(pmf, f"the pmf at {site}"))
        self.depth += 1
        self.product *= len(possible)
        return possible[self._uniform.categorical(np.full(len(possible), 1 / len(possible)), site)]


def _probe(program: Callable[[Draws], Any], rng: np.random.Generator) -> float:
    probe = Probe(rng)
    with suppress(Exception):  # the enumeration itself will meet it, if it is worth a word
        program(probe)
    return probe.product
