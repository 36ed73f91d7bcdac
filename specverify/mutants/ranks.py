"""Planted bugs of the agreement between ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import decided, drawn, planted_verifier
from specverify.mutants.serving.planted import engine_part
from specverify.reference import Draws, Tokens


def earliest(corpus: Tokens, tokens: Tokens, count: int) -> Tokens:
    """Return what followed the first occurrence of the last token."""
    result = corpus.index(tokens[-1]) + 1
    return corpus[result : result + count] if result < len(corpus) else ()


@engine_part(
    "rank_lookup",
    "two ranks with lookup",
    "ranks-draft-alone",
    "each rank looks up drafts of its own",
    category="P",
    citation="vLLM issue #31154, PRs #31288, #31307",
)
def ranks_draft_alone(rank: int) -> Callable[[Tokens, Tokens, int], Tokens] | None:
    """Return a lookup that takes the first occurrence instead of the last, on every rank but one.

    Ranks look their drafts up by themselves and find different ones.
    """
    return earliest if rank else None


@engine_part(
    "rank_draws",
    "two ranks",
    "ranks-draw-alone",
    "each rank has random numbers of its own",
    category="P",
    citation="vLLM issue #17498, PR #17509",
)
def ranks_draw_alone(draws: Draws, drawn: dict[Any, int], rank: int) -> Draws:
    """Return draws that no other rank gets.

    Ranks sample without a common seed: one accepts what another rejects, and they part.
    """
    return draws


@engine_part(
    "schedule",
    "one request",
    "scheduled-while-in-flight",
    "a request is scheduled while in flight",
    category="P",
    citation="vLLM issue #52071",
)
def scheduled_while_in_flight(ready: Sequence[int], step: int, rotates: bool) -> tuple[int, ...]:
    """Return every request twice in one step.

    The field that keeps a request's steps apart is never set, so its next pass begins before the last is committed.
    """
    return (*ready, *ready)


RANKS = 2


def sharded(weights: Any) -> float:
    """Return a drawn token: the shard that holds it, and its place there behind the shard's begin."""
    token, size = drawn(np.random.default_rng(), weights), len(weights)
    begins = [-(-rank * size // RANKS) for rank in range(RANKS)]
    rank = max(rank for rank in range(RANKS) if begins[rank] <= token)
    return token - begins[rank] + rank * size / RANKS


@planted_verifier(
    "shards-begin-at-fractions",
    "emits the number 1.5",
    category="P",
    citation="plausible",
    killed_by="tokens_are_supported",
)
def shards_begin_at_fractions(p: Any, q: Any, draft_tokens: Any) -> list[float]:
    """Speculative sampling whose last token is put together from its shard.

    Shards of the vocabulary begin at ``rank * V / ranks``, a true division: the second begins between two tokens.
    """
    result = decided(np.random.default_rng(), p, q, draft_tokens.tolist())
    kept = result[:-1]
    bonus = len(kept) == len(draft_tokens)
    return [*kept, sharded(p[-1])] if bonus else [*kept, float(result[-1])]
