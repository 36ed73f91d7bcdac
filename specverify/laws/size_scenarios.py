"""Scenarios of a given size: long texts, long prompts, many rows, large vocabularies.

Rows are one-hot, so each scenario has one path. Many faults occur only at a certain length: at the end of a page of a
cache, a ring buffer, an attention window, a block or a captured graph. Such lengths are powers of two, plus or minus
one. A text of 132 tokens passes every such length up to 129, and prompts end at each of them. For a number of drafts,
further scenarios have one row that is not one-hot. A program that uses the row of q of another position fails only in
these scenarios: with one-hot rows, a token that it wrongly rejects is emitted as its own replacement.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from specverify.laws.certain_tables import CERTAIN, open_after
from specverify.laws.scenarios import Scenario
from specverify.reference import Tokens

MOST: Final = 128
"""Default for the largest power of two that the sizes cover."""
EDGES: Final = tuple(sorted({2**power + beside for power in range(3, MOST.bit_length()) for beside in (-1, 0, 1)}))
"""The powers of two from 8 on, each with its two neighbours."""
_BEHIND: Final = 5
"""Number of new tokens after a long prompt."""
_PASSED: Final = 4
"""Number of new tokens after the last edge."""


class Sizes(NamedTuple):
    """Sizes that an engine must handle in addition to the defaults; 0 adds none.

    The defaults are texts of 132 tokens, prompts of 2^k - 1, 2^k or 2^k + 1 tokens from k = 3 to 7, and batches of nine
    rows. Scenarios of a size have few paths, so large sizes are cheap.

    Examples:
        >>> Sizes(horizon=256, vocabulary=151_936).rows
        0
    """

    horizon: int = 0
    """Number of new tokens; 0: not set."""
    prompt: int = 0
    """Number of prompt tokens; one fewer and one more are checked too. 0: not set."""
    rows: int = 0
    """Number of rows of a batch, for an engine with ``batched``; 0: not set."""
    gamma: int = 0
    """Number of drafts of a round, which ``make`` reads from ``scenario.gamma``; 0: not set."""
    vocabulary: int = 0
    """Vocabulary size of a text with a few one-hot rows; 0: not set."""
    least_vocabulary: int = 0
    """Smallest vocabulary of every scenario, 2 to 8, for an engine that needs more than two tokens, for example because
    it has an end-of-sequence token of its own; 0: not set."""
    ranks: int = 0
    """Number of ranks for ``promises={"ranks"}``; 0: 2 ranks."""


NO_SIZES: Final = Sizes()
"""The default: no sizes besides those that every engine is checked at."""


def size_scenarios(sizes: Sizes = NO_SIZES) -> tuple[Scenario, ...]:
    """Return the default scenarios of long texts and prompts for engines, and those that ``sizes`` adds."""
    prompts = (*EDGES, *_beside(sizes.prompt))
    scenarios = [Scenario(CERTAIN, 4, (0,), MOST + _PASSED, seed=seed) for seed in (210, 211)]
    scenarios += [Scenario(CERTAIN, 4, long_prompt(length), _BEHIND, seed=212) for length in dict.fromkeys(prompts)]
    if sizes.horizon:
        scenarios.append(Scenario(CERTAIN, 4, (0,), sizes.horizon, seed=213))
    if sizes.gamma:
        scenarios += [Scenario(CERTAIN, 4, (0,), 3 * (sizes.gamma + 1), seed=seed) for seed in (214, 215)]
        scenarios += _open_rows(sizes.gamma)
    if sizes.vocabulary:
        scenarios.append(Scenario(CERTAIN, sizes.vocabulary, (0, sizes.vocabulary - 1), 6, seed=216))
    return tuple(dict.fromkeys(scenarios))


def _open_rows(gamma: int) -> tuple[Scenario, ...]:
    """Return at most nine scenarios of one round with ``gamma`` drafts, each with one row that is not one-hot.

    The position of this row differs between the scenarios, from the first draft to the bonus token.
    """
    places = dict.fromkeys(1 + round(point * gamma / 8) for point in range(9))
    return tuple(Scenario(open_after(place), 3, (0,), gamma + 1, seed=30) for place in places)


def _beside(length: int) -> tuple[int, ...]:
    return (max(length - 1, 1), length, length + 1) if length else ()


def long_prompt(length: int) -> Tokens:
    """Return an aperiodic prompt of this length."""
    return tuple((place * place + place // 3) % 4 for place in range(length))


def many_rows(rows: int) -> tuple[Tokens, ...]:
    """Return a batch of ``rows`` prompts of several lengths; the first and the last prompt are equal."""
    return tuple(
        long_prompt(1 + (5 * row) % 7 + row // 7) if row != rows - 1 else long_prompt(1) for row in range(rows)
    )
