"""Many independent runs of a program of draws, at the cost of one run for each path that any of them takes.

n independent runs that make the same draw answer it independently, so the numbers of runs with each outcome are
multinomial with n and the pmf; given those numbers, the runs with different outcomes are independent again. So the
counts of n runs are drawn by dividing n at each draw and following every outcome with at least one run. Runs whose
rounds end in equal states have the same law from there on, so they are counted together. The only approximation is that
pmfs are rounded to float64 and scaled to sum to 1, as in ``Sampled``.

The conditions are those of ``laws.enumeration``: the program is deterministic given its outcomes, and the state
contains everything on which the next round depends. Every replay tests the first condition. To test the second, and the
method itself, ``specverify stats`` also samples some algorithms run by run.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from specverify.laws.draws import Question
from specverify.laws.paths import outcomes_of
from specverify.reference import Decoder, Draws, Pmf, Site, State, Tokens

Outcome = TypeVar("Outcome")
Array = np.ndarray[Any, np.dtype[Any]]


class _Split:
    """A draw on the current path: the number of runs with each outcome, and the outcome that is followed."""

    def __init__(self, question: Question, number: int, rng: np.random.Generator) -> None:
        self.question, self.index = question, 0
        masses = question.masses
        possible = np.flatnonzero(masses)
        shares = np.array(divided(masses[possible], number, rng))
        some = np.flatnonzero(shares)
        self.taken: list[tuple[int, int]] = list(zip(possible[some].tolist(), shares[some].tolist(), strict=True))


class Divided:
    """An interpreter that follows one path of many runs and divides the runs at each new draw."""

    def __init__(self, splits: list[_Split], number: int, rng: np.random.Generator) -> None:
        """Follow one path of ``number`` runs; ``splits`` is shared by all paths and grows as the program draws.

        ``rng`` divides the runs.
        """
        self._splits, self._rng = splits, rng
        self.number, self.depth = number, 0
        self.failure: Exception | None = None
        """The error of a draw; kept here because the program may catch it."""

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return the outcome of the draw at ``site`` from ``pmf`` on the followed path.

        A new draw divides the runs among its outcomes. Raises ``NotAFunctionOfItsDraws`` if a replay makes another
        draw.
        """
        try:
            return self._outcome(pmf, site)
        except Exception as error:
            self.failure = error
            raise

    def _outcome(self, pmf: Pmf, site: Site) -> int:
        if self.depth < len(self._splits):
            self._splits[self.depth].question.check_repeated(pmf, site)
        else:
            self._splits.append(_Split(Question(pmf, site, self.depth), self.number, self._rng))
        split = self._splits[self.depth]
        self.depth += 1
        outcome, self.number = split.taken[split.index]
        return outcome


def divided_runs(
    program: Callable[[Draws], Outcome], number: int, rng: np.random.Generator
) -> Iterator[tuple[Outcome, int]]:
    """Yield (result, number of runs) for every path that ``number`` >= 1 independent runs of ``program`` take.

    ``rng`` divides the runs among the outcomes of a draw. Raises ``NotAFunctionOfItsDraws`` if a replay makes another
    draw.
    """
    splits: list[_Split] = []
    while True:
        draws = Divided(splits, number, rng)
        outcome = program(draws)
        if draws.failure is not None:
            raise draws.failure
        if draws.depth < len(splits):
            splits[draws.depth].question.check_made(draws.depth)
        yield outcome, draws.number
        while splits and splits[-1].index == len(splits[-1].taken) - 1:
            splits.pop()
        if not splits:
            return
        splits[-1].index += 1


def divided_counts(decoder: Decoder, prompt: Tokens, number: int, rng: np.random.Generator | int) -> Counter[Tokens]:
    """Return text -> number of decodes, for the new tokens of ``number`` independent decodes of ``decoder``.

    The decodes start at ``prompt``; ``rng`` (a generator or a seed) divides the runs.
    """
    rng = np.random.default_rng(rng)
    counts: Counter[Tokens] = Counter()
    waiting: dict[int, Counter[State]] = defaultdict(Counter)
    start = decoder.init(prompt)
    waiting[len(start.tokens)][start] = number
    while number and waiting:
        length = min(waiting)
        for state, here in waiting.pop(length).items():
            if state.remaining <= 0:
                counts[state.tokens[len(prompt) :]] += here
                continue
            for (after, _), some in divided_runs(lambda draws, state=state: decoder.step(draws, state), here, rng):  # type: ignore[misc]
                if len(after.tokens) <= length and after.remaining > 0:
                    raise ValueError(f"a round committed no token after {state.tokens}, expected at least one")
                waiting[len(after.tokens)][after] += some
    return counts


def program_counts(program: Callable[[Draws], Any], number: int, rng: np.random.Generator | int) -> Counter[Any]:
    """Return outcome -> number of runs, for ``number`` independent runs of ``program``; outcomes are hashable.

    ``rng`` (a generator or a seed) divides the runs.
    """
    rng = np.random.default_rng(rng)
    counts: Counter[Any] = Counter()
    for end, here in divided_runs(program, number, rng) if number else ():
        outcomes, weights = zip(*outcomes_of(end), strict=True)
        shares = divided(np.array(weights, dtype=np.float64), here, rng)
        counts.update(dict(zip(outcomes, shares.tolist(), strict=True)))
    return +counts


def divided(weights: Array, number: int, rng: np.random.Generator) -> Array:
    """Return how many of ``number`` runs take each outcome, drawn by ``rng``: an array as long as ``weights``.

    It is a multinomial sample with ``weights`` scaled to sum 1. Every weight must be positive.
    """
    return rng.multinomial(number, weights / weights.sum()) if len(weights) > 1 else np.array([number])
