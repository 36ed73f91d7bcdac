"""One speculative round on a cache: draft and verify, prune, feed the missing tokens, and classify the result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from reference.kv_cache import keep_lengths, tokens_to_feed
from test_support.gpu.cache_comparison import DIFFERENT_LENGTH, bound, difference, fresh, relative_difference
from test_support.gpu.caches import Held, Kind

KNOWN = (3, 1, 4, 1, 5)
DRAFTS = (9, 2, 6, 5, 3, 5, 8, 9)
EMITTED = 7
GAMMAS = range(len(DRAFTS) + 1)
SIDES = ("target", "draft")


class Outcome(NamedTuple):
    """The result of one round on a cache."""

    verdict: str
    """One of ``VERDICTS``."""
    largest: float = 0.0
    """The largest relative difference: of everything, or of the next logits alone for ``other positions``."""
    words: str = ""
    """The exception, if any."""


VERDICTS = ("equal", "refused", "fails", "differs", "other positions")
"""From best to worst; a cell of the table shows the worst of its rounds.

``refused``: pruning raised. ``fails``: the feed behind it raised. ``other positions``: a layer says that it holds
another number of tokens than were kept, so what is fed next has another position.
"""


def worst(outcomes: list[Outcome]) -> Outcome:
    return max(outcomes, key=lambda outcome: (VERDICTS.index(outcome.verdict), outcome.largest))


def before_pruning(model: Any, of: Kind, side: str, gamma: int, known: tuple[int, ...] = KNOWN) -> Held:
    """Return the cache before pruning: the target's after a verifying pass, or the drafter's after drafting.

    ``side`` selects the model. The drafter was never fed its own last draft.
    """
    held = Held(model, of)
    if known[:-1]:
        held.feed((known[:-1],))
    held.before_drafting()
    if side == "target":
        held.feed((tokens_to_feed(known, held.held) + DRAFTS[:gamma],))
    else:
        for i in range(gamma):
            held.feed((tokens_to_feed(known + DRAFTS[:i], held.held),))
    return held


def settle(held: Held, keep: int, tokens: tuple[int, ...], before: int) -> Outcome:
    """Prune the cache to ``keep`` tokens, feed the rest of ``tokens``, and compare both with fresh prefills."""
    try:
        held.prune(keep)
    except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
        return Outcome("refused", words=f"{type(error).__name__}: {error}")
    found = difference(held.cache, fresh(held.model, held.kind, (tokens[:keep],), before=before)) if keep else 0.0
    expected = fresh(held.model, held.kind, (tokens,), before=before)
    try:
        logits = held.feed((tokens_to_feed(tokens, keep),))[:, -1]
    except (IndexError, RuntimeError, ValueError) as error:
        return Outcome("fails", words=f"{type(error).__name__}: {error}")
    of_logits = relative_difference(logits, expected.logits[:, -1])
    largest = max(found, of_logits, difference(held.cache, expected))
    if largest == DIFFERENT_LENGTH:
        return Outcome("other positions", of_logits)
    return Outcome("equal" if largest < bound(held.model.config.model_type) else "differs", largest)


def rounds(
    model: Any, of: Kind, side: str, gammas: range = GAMMAS, known: tuple[int, ...] = KNOWN
) -> Iterator[tuple[int, int, Outcome]]:
    """Yield gamma, the accepted length and the result, for every gamma and accepted length."""
    for gamma in gammas:
        held = before_pruning(model, of, side, gamma, known)
        for accepted in range(gamma + 1):
            keep = getattr(keep_lengths(len(known), gamma, accepted), side)
            tokens = (*known, *DRAFTS[:accepted], EMITTED)
            yield gamma, accepted, settle(held.copy(), keep, tokens, len(known) - 1)
