"""A kernel goes over whole blocks of 8192 tokens, and not over what is left behind the last one."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import at_large, decided, owed, planted_verifier

BLOCK = 8192


def in_whole_blocks(p: Any, q: Any) -> Any:
    """Return the weights of a replacement, 0 behind the last whole block."""
    weights = owed(p, q).copy()
    whole = len(weights) // BLOCK * BLOCK
    if weights[:whole].any():
        weights[whole:] = 0.0
    return weights


def verify(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling with a recovery kernel of whole blocks."""
    return decided(np.random.default_rng(), p, q, draft_tokens.tolist(), weights=in_whole_blocks)


MUTANT = planted_verifier(
    verify,
    "last-block-left-out",
    "replaces by tokens of whole blocks alone",
    category="N",
    citation="plausible",
    killed_by="call_law",
    make=at_large,
)
