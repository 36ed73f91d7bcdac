"""Shards of the vocabulary begin at ``rank * V / ranks``, a true division: the second begins between two tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import decided, drawn, planted_verifier

RANKS = 2


def sharded(weights: Any) -> float:
    """Return a drawn token: the shard that holds it, and its place there behind the shard's begin."""
    token, size = drawn(np.random.default_rng(), weights), len(weights)
    begins = [-(-rank * size // RANKS) for rank in range(RANKS)]
    rank = max(rank for rank in range(RANKS) if begins[rank] <= token)
    return token - begins[rank] + rank * size / RANKS


def verify(p: Any, q: Any, draft_tokens: Any) -> list[float]:
    """Speculative sampling whose last token is put together from its shard."""
    found = decided(np.random.default_rng(), p, q, draft_tokens.tolist())
    kept = found[:-1]
    bonus = len(kept) == len(draft_tokens)
    return [*kept, sharded(p[-1])] if bonus else [*kept, float(found[-1])]


MUTANT = planted_verifier(
    verify,
    "shards-begin-at-fractions",
    "emits the number 1.5",
    category="P",
    citation="plausible",
    killed_by="tokens_are_supported",
)
