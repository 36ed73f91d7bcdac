"""The exact output law of a program: run it under every outcome of every draw, multiply the weights.

``paths`` enumerates any program of ``draws``. ``decoder_law`` pushes a law forward round by round and merges equal
states, which is what makes several rounds affordable. Conditions: draws are finite and declared, the state holds
everything the next round depends on, and the program does the same when its draws are answered alike; when it does
not, the error names the site that changed. A budget bounds the runs, and what it left out is reported as missing mass.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from reference import Decoder, Draws, Pmf, Sampled, Site, State, Tokens, as_pmf, check_pmf
from specverify.base.arguments import check_callable, check_integer, check_seed, refusal
from specverify.laws.draws import Decision, Question, support
from specverify.laws.law import Coverage, Law
from specverify.laws.rounding import NEGLIGIBLE, Rounding, collected, drew, saw, worst
from specverify.laws.rounding import after as one_after

Outcome = TypeVar("Outcome")

DEFAULT_RUNS = 200_000
PROBES = 16
"""Random runs that estimate the number of paths; rounds of no more paths than that are not estimated."""


class EnumerationTooLarge(Exception):  # noqa: N818 - reads as the sentence it is
    """The enumeration would need far more runs than the budget; refused before it starts."""


class Path(NamedTuple, Generic[Outcome]):
    """One run: what came out, with which probability, by which choices."""

    outcome: Outcome
    weight: Any
    choices: tuple[int, ...]
    decisions: tuple[Decision, ...]
    rounding: Rounding = Rounding()


class Undecided(NamedTuple):
    """The end of a run in which some draws were never looked at: every outcome with its share of the path."""

    outcomes: tuple[tuple[Any, Any], ...]


class _Reached(NamedTuple):
    """How a state is reached, on all paths to it together."""

    weight: Any = 0
    draws: int = 0
    coverage: Coverage = Coverage()
    rounding: Rounding = Rounding()


class _Branch:
    """A draw on the current path, and which of its possible outcomes is being followed."""

    def __init__(self, question: Question, index: int) -> None:
        self.question, self.index = question, index
        self.site, self.weights, self.possible = question.site, question.weights, question.possible

    @property
    def outcome(self) -> int:
        return self.possible[self.index]


class Enumerated:
    """Follows the branches of a path, then opens new ones at their first outcome."""

    def __init__(self, branches: list[_Branch], first: tuple[int, ...] = ()) -> None:
        """``branches`` is shared with the enumeration and grows as the program draws; ``first`` fixes outcomes."""
        self._branches, self._first = branches, first
        self.depth = 0
        self.failure: Exception | None = None
        """What was wrong with a draw, also where the program swallowed it."""

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return the outcome of this path; raises ``NotAFunctionOfItsDraws`` if the question changed on replay."""
        try:
            return self._outcome(as_pmf(pmf), site)
        except Exception as error:
            self.failure = error
            raise

    def _outcome(self, pmf: Pmf, site: Site) -> int:
        saw(pmf.dtype)
        if self.depth < len(self._branches):
            self._branches[self.depth].question.check_repeated(pmf, site)
        else:
            question, fixed = Question(pmf, site, self.depth), self._first[self.depth : self.depth + 1]
            self._branches.append(_Branch(question, question.possible.index(*fixed) if fixed else 0))
        self.depth += 1
        branch = self._branches[self.depth - 1]
        drew(len(branch.possible))
        return branch.outcome


def paths(program: Callable[[Draws], Outcome], first: tuple[int, ...] = ()) -> Iterator[Path[Outcome]]:
    """Yield every path of ``program``, once, depth first. Stop early by not asking for more.

    ``first`` restricts to the paths whose first draws have these outcomes. A path of floats that ends in an exception
    and has less probability than float64 rounding makes is passed over.
    """
    check_callable(program, "the program")
    branches: list[_Branch] = []
    while True:
        draws = Enumerated(branches, first)
        try:
            with collected() as seen:
                outcome = program(draws)
        except Exception:
            if draws.failure is not None or not _happens_by_rounding(branches):
                raise
            if not _next_branch(branches, first):
                return
            continue
        if draws.failure is not None:
            raise draws.failure
        if draws.depth < len(branches):
            branches[draws.depth].question.check_made(draws.depth)
        weight: Any = 1
        for branch in branches:
            weight = weight * branch.weights[branch.outcome]
        decisions = tuple(Decision(branch.site, branch.weights, branch.outcome) for branch in branches)
        choices = tuple(branch.outcome for branch in branches)
        yield Path(outcome, weight, choices, decisions, seen.rounding())
        if not _next_branch(branches, first):
            return


def _next_branch(branches: list[_Branch], first: tuple[int, ...]) -> bool:
    """Turn to the next path. Return whether there is one."""
    while len(branches) > len(first) and branches[-1].index == len(branches[-1].possible) - 1:
        branches.pop()
    if len(branches) <= len(first):
        return False
    branches[-1].index += 1
    return True


def _happens_by_rounding(branches: list[_Branch]) -> bool:
    """Return whether a path of floats is so rare that it is there because they are rounded.

    An inverse CDF whose last bound is 1 - 2**-53 has a run in which it finds nothing.
    """
    weight: Any = math.prod(branch.weights[branch.outcome] for branch in branches)
    return isinstance(weight, float) and weight < NEGLIGIBLE


def first_outcomes(program: Callable[[Draws], Any], depth: int) -> list[tuple[int, ...]]:
    """Return the outcomes of the first ``depth`` draws of every path: a partition of the paths into shares."""
    check_integer(depth, "the depth", least=0)
    shares: list[tuple[int, ...]] = [()]
    for _ in range(depth):
        longer = []
        for share in shares:
            path = next(paths(program, share))
            ends = len(path.decisions) <= len(share)
            outcomes = () if ends else [j for j, mass in enumerate(path.decisions[len(share)].weights) if mass > 0]
            longer += [share] if ends else [(*share, outcome) for outcome in outcomes]
        shares = longer
    return shares


def program_law(program: Callable[[Draws], Any], budget: int = DEFAULT_RUNS, first: tuple[int, ...] = ()) -> Law:
    """Return the law of what ``program`` returns (hashable), path by path, within ``budget`` runs.

    With ``first`` only the share of the paths that begin so; the probabilities are then those of the whole, in part.
    """
    check_integer(budget, "the budget")
    law: dict[Any, Any] = {}
    found: Any = 0
    runs = decisions = 0
    exhausted = False
    share: Any = 1
    rounding = Rounding()
    for path in paths(program, first):
        if runs == 0:
            share = math.prod(step.weights[step.outcome] for step in path.decisions[: len(first)])
        runs += 1
        for outcome, part in outcomes_of(path.outcome):
            law[outcome] = law.get(outcome, 0) + path.weight * part
        found = found + path.weight
        decisions = max(decisions, len(path.choices))
        rounding = worst(rounding, path.rounding)
        if runs == budget:
            exhausted = True
            break
    return Law(law, share - found if exhausted else 0, runs, decisions, rounding=rounding)


def complete_law(program: Callable[[Draws], Any], budget: int = DEFAULT_RUNS) -> dict[Any, Any]:
    """Return outcome -> probability, in order, of a program that serves as a yardstick.

    Raises ``EnumerationTooLarge`` where ``budget`` runs do not follow every path.
    """
    law = program_law(program, budget)
    if law.missing:
        raise EnumerationTooLarge(f"the call without speculation has more than {law.runs} paths")
    return {outcome: law.probabilities[outcome] for outcome in sorted(law.probabilities)}


def outcomes_of(end: Any) -> tuple[tuple[Any, Any], ...]:
    """Return what a run can end with and the share of each: one outcome, unless some draws were never looked at."""
    return end.outcomes if isinstance(end, Undecided) else ((end, 1),)


def decoder_law(decoder: Decoder, prompt: Tokens, budget: int = DEFAULT_RUNS) -> Law:
    """Return the law of the new tokens after ``prompt``, round by round, equal states merged.

    States are taken in the order of their length: a round adds at least one token, so every state is complete before
    it is expanded. Raises ``EnumerationTooLarge`` when the first round alone is estimated beyond ten times the budget;
    only a round of more paths than that estimate takes is estimated.
    """
    if not isinstance(decoder, Decoder):
        raise refusal("the decoder", decoder, "a Decoder, as an algorithm's build makes it")
    check_integer(budget, "the budget")
    start = decoder.init(prompt)
    few = min(PROBES, budget)
    waiting: dict[int, dict[State, _Reached]] = defaultdict(dict)
    waiting[len(start.tokens)][start] = _Reached(1)
    law: dict[Tokens, Any] = {}
    missing: Any = 0
    runs = decisions = 0
    coverage, rounding = Coverage(), Rounding()
    while waiting:
        length = min(waiting)
        for state, (weight, drawn, seen, rounded) in waiting.pop(length).items():
            if state.remaining <= 0:
                new = state.tokens[len(prompt) :]
                law[new] = law.get(new, 0) + weight
                decisions, coverage = max(decisions, drawn), _wider(coverage, seen)
                rounding = worst(rounding, rounded)
                continue
            left: Any = 1
            for path in paths(lambda draws, state=state: decoder.step(draws, state)):  # type: ignore[misc]
                if runs == few and state == start:
                    _refuse_if_hopeless(decoder, start, budget)
                if runs == budget:
                    missing = missing + weight * left
                    break
                runs += 1
                left = left - path.weight
                after, done = path.outcome
                if len(after.tokens) <= length and after.remaining > 0:
                    raise ValueError(f"a round committed no token after {state.tokens}, expected at least one")
                through = _after_round(seen, len(done.draft), done.accepted)
                before = waiting[len(after.tokens)].get(after, _Reached())
                waiting[len(after.tokens)][after] = _Reached(
                    before.weight + weight * path.weight,
                    max(before.draws, drawn + len(path.choices)),
                    _wider(before.coverage, through),
                    worst(before.rounding, one_after(rounded, path.rounding)),
                )
    return Law(law, missing, runs, decisions, coverage, rounding)


def whole_run(decoder: Decoder, prompt: Tokens) -> Callable[[Draws], Tokens]:
    """Return the program that decodes from ``prompt`` to the end and returns the new tokens: nothing merged."""

    def program(draws: Draws) -> Tokens:
        state = decoder.init(prompt)
        while state.remaining > 0:
            state, _ = decoder.step(draws, state)
        return state.tokens[len(prompt) :]

    return program


def estimated_paths(program: Callable[[Draws], Any], probes: int = PROBES, seed: int = 0) -> float:
    """Return an unbiased estimate of the number of paths: mean product of branching factors over random probes.

    Knuth, "Estimating the efficiency of backtrack programs" (1975). Every probe takes each branch equally likely.
    """
    check_integer(probes, "the number of probes")
    check_seed(seed)
    rng = np.random.default_rng(seed)
    return float(np.mean([_probe(program, rng) for _ in range(probes)]))


def _probe(program: Callable[[Draws], Any], rng: np.random.Generator) -> float:
    product = 1.0
    uniform = Sampled(rng)

    class Probe:
        def categorical(self, pmf: Pmf, site: Site) -> int:
            nonlocal product
            possible = support(check_pmf(pmf, f"the pmf at {site}"))
            product *= len(possible)
            return possible[uniform.categorical(np.full(len(possible), 1 / len(possible)), site)]

    with suppress(Exception):  # the enumeration itself will meet it, if it is worth a word
        program(Probe())
    return product


def _refuse_if_hopeless(decoder: Decoder, start: State, budget: int) -> None:
    estimate = estimated_paths(lambda draws: decoder.step(draws, start))
    if estimate > 10 * budget:
        raise EnumerationTooLarge(
            f"one round from {start.tokens} has about {estimate:.2g} paths, and the budget is {budget} runs: "
            "use a smaller vocabulary or gamma, a larger budget, or sampling"
        )


def _after_round(coverage: Coverage, drafted: int, accepted: int) -> Coverage:
    return Coverage(
        coverage.rounds + 1, coverage.rounds_of_two + (drafted >= 2), coverage.outcomes | {(drafted, accepted)}
    )


def _wider(one: Coverage, other: Coverage) -> Coverage:
    return Coverage(
        max(one.rounds, other.rounds), max(one.rounds_of_two, other.rounds_of_two), one.outcomes | other.outcomes
    )
