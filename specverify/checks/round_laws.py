"""The first rounds of a decoder, enumerated: their drafts and numbers of accepted drafts, with probabilities.

Two checks use them: of the drafts and of the acceptance.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from specverify.laws.enumeration import EnumerationTooLarge
from specverify.laws.paths import RunBudget, paths
from specverify.laws.rounding import FLOAT32
from specverify.reference import Decoder, State, Tokens
from specverify.subjects.subject import InScenario

MOST_STATES = 5


class FirstRound(NamedTuple):
    """One round from the state ``state``, enumerated: the law of its drafts and of its number of accepted drafts.

    ``runs`` is the number of runs of the enumeration.
    """

    state: State
    masses: Mapping[tuple[Tokens, int], Any]
    """(drafts, number of accepted drafts) -> probability."""
    runs: int
    epsilon: float
    """Spacing at 1 of the coarsest floats that were observed."""
    within: float
    """The largest error of probabilities that are known between bounds only."""


@lru_cache(maxsize=4096)
def first_rounds(here: InScenario, budget: int) -> tuple[FirstRound, ...]:
    """Return the enumerated round after the prompt, and the rounds from a few unfinished states after it.

    If the calls of a verifier are memoised, only the round after the prompt is returned, because the rounds of such a
    verifier depend on the text alone. Returns () if no token is to be decoded. ``here`` is the decoder in its scenario.
    Raises ``EnumerationTooLarge`` if a round has ``budget`` runs or more, as ``RunBudget`` counts them.
    """
    decoder = here.remembering
    start = decoder.init(here.prompt)
    if start.remaining <= 0:
        return ()
    first, after = _round(decoder, start, budget)
    if here.variant.remembered is not None:
        return (first,)
    others = [state for state in after if state.remaining > 0][: MOST_STATES - 1]
    return (first, *(_round(decoder, state, budget)[0] for state in others))


def _round(decoder: Decoder, state: State, budget: int) -> tuple[FirstRound, tuple[State, ...]]:
    masses: dict[tuple[Tokens, int], Any] = defaultdict(int)
    runs, epsilon, within = 0, FLOAT32, 0.0
    after: dict[State, None] = {}
    spent = RunBudget(budget)
    for path in paths(lambda draws: decoder.step(draws, state), rare=spent.leave_out):
        if spent.is_over:
            break
        spent.follow()
        reached, done = path.outcome
        masses[done.draft, done.accepted] += path.weight
        after[reached] = None
        runs, epsilon, within = runs + 1, max(epsilon, path.rounding.epsilon), max(within, path.rounding.within)
    if spent.is_over:
        raise EnumerationTooLarge(f"the round after {state.tokens} has {budget} runs or more")
    return FirstRound(state, masses, runs, epsilon, within), tuple(after)
