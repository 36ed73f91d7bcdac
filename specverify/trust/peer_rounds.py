"""Draw successive rounds of one decoder, for the statistics by which other projects test their decoders.

If a round is a function of its draws, many rounds are drawn at once by ``laws.divided``. If a round calls random
functions of NumPy or torch, these calls are intercepted and become draws. If a round depends on anything else, such as
a count of calls, each round is run separately.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from specverify.intercept.everywhere import Unanswered, answered_everywhere
from specverify.intercept.refusals import NeedsValue
from specverify.laws.divided import divided_runs
from specverify.laws.draws import Narrated, NotAFunctionOfItsDraws, Replayed
from specverify.reference import Decoder, Draws, Sampled, Tokens

Blocks = Mapping[Tokens, int]
"""Tokens emitted by a round -> how often."""

PROMPT = (0,)
MOST_SECONDS = 100
"""Limit in CPU seconds for one sample. Most samples take a few seconds, some a minute; the joint law of two races over
4096 tokens would take days."""
PROBE_SECONDS = 5
"""Interval in seconds after which the code tests whether the remaining rounds fit in ``MOST_SECONDS``."""
REPEATED = 64
"""Number of runs that are made twice, within ``PROBE_SECONDS``, to find randomness that does not come from draws. A
coin of probability 1/4 is equal in all pairs of runs, and so missed, with probability 1e-13."""
LOOKS = 32
"""Number of times during a sample at which the code tests whether the remaining rounds can change the result."""
CANNOT_BE_DRAWN = (NotAFunctionOfItsDraws, NeedsValue)
"""Errors after which the sample is started again with another way to draw rounds."""


class RoundDrawer(Protocol):
    """A function that draws independent rounds of a decoder and counts the texts that they emit."""

    def __call__(self, number: int, settled: Callable[[Blocks], bool] = ..., /) -> Blocks:
        """Return how often each text occurs in ``number`` rounds.

        Drawing stops as soon as ``settled(counts)`` returns True for the counts so far. Then the returned counts are
        lower bounds of the final counts; they are not a random sample, because the stop depends on them.
        """
        ...


class PeerRounds(NamedTuple):
    """One method of drawing rounds of a decoder, and whether the rounds that it draws are independent."""

    draw: RoundDrawer
    independent: bool
    """Whether the rounds are independent and identically distributed, by construction."""


def rounds_of(decoder: Decoder, rng: np.random.Generator, intercepted: bool = False) -> Iterator[PeerRounds]:
    """Yield methods of drawing a decoder's rounds after ``PROMPT``, to be tried in order.

    The caller uses the next method if one raises an error in ``CANNOT_BE_DRAWN``. ``rng`` draws the rounds.
    ``intercepted``: the decoder's random calls are already answered by draws. A method raises ``TimeoutError`` if it
    would take too long, and ``ValueError`` if a round emits no token.
    """
    start = decoder.init(PROMPT)

    def one_round(draws: Draws) -> Tokens:
        return decoder.step(draws, start)[1].tokens

    def answered(draws: Draws) -> Tokens:
        with answered_everywhere(draws):
            return tuple(map(int, one_round(Unanswered(draws))))

    for program in (one_round,) if intercepted else (one_round, answered):
        if _repeats_itself(program):
            yield PeerRounds(partial(_counted, partial(divided_runs, program, rng=rng)), independent=True)
    yield PeerRounds(partial(_counted, partial(_one_by_one, one_round, rng)), independent=False)


def _repeats_itself(program: Callable[[Draws], Tokens]) -> bool:
    """Return whether ``program`` returns the same tokens again when all its draws have the same outcomes again.

    At most ``REPEATED`` sampled rounds are repeated. The result is False too if a repeated round makes other draws, or
    if the draws cannot be controlled. Raises ``TimeoutError`` if the first round takes more than ``PROBE_SECONDS``.
    """
    begun = time.process_time()
    for seed in range(REPEATED):
        first = Narrated(Sampled(seed))
        try:
            block = program(first)
            if seed == 0 and (spent := time.process_time() - begun) > PROBE_SECONDS:
                raise TimeoutError(f"one round takes {spent:.0f} s")
            again = Narrated(Replayed([decision.outcome for decision in first.decisions]))
            if program(again) != block or again.decisions != first.decisions:
                return False
        except CANNOT_BE_DRAWN:
            return False
        if time.process_time() - begun > PROBE_SECONDS:
            break
    return True


def _never(_: Blocks) -> bool:
    return False


def _one_by_one(
    program: Callable[[Draws], Tokens], rng: np.random.Generator, number: int
) -> Iterator[tuple[Tokens, int]]:
    draws = Sampled(rng)
    return ((program(draws), 1) for _ in range(number))


def _counted(
    rounds: Callable[[int], Iterable[tuple[Tokens, int]]],
    number: int,
    settled: Callable[[Blocks], bool] = _never,
    /,
) -> Blocks:
    result, done, looks, begun = Counter[Tokens](), 0, 1, time.process_time()
    again = time.perf_counter() + PROBE_SECONDS
    for block, here in rounds(number):
        if not block:
            raise ValueError("a round emitted no token, expected at least one")
        result[block] += here
        done += here
        if time.perf_counter() > again:  # the clock of the processor is a call of the system: not for every block
            again += PROBE_SECONDS
            _refuse_if_slow(time.process_time() - begun, number, done)
        if done * LOOKS >= number * looks:
            looks = done * LOOKS // number + 1
            if settled(result):
                break
    return result


def _refuse_if_slow(spent: float, number: int, done: int) -> None:
    if spent * number / done > MOST_SECONDS:
        raise TimeoutError(f"{number} rounds would take {spent * number / done:.0f} s, more than {MOST_SECONDS}")
