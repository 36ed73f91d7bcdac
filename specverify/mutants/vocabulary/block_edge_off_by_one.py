"""Blocks of 8192 tokens begin one too late: the first token of each but the first is nobody's."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import at_large, decided, owed, planted_verifier

BLOCK = 8192


def without_firsts(p: Any, q: Any) -> Any:
    """Return the weights of a replacement, 0 at the first token of each block."""
    weights = owed(p, q).copy()
    firsts = weights[BLOCK::BLOCK].copy()
    weights[BLOCK::BLOCK] = 0.0
    if not weights.any():
        weights[BLOCK::BLOCK] = firsts
    return weights


def verify(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling with a recovery kernel whose blocks do not meet."""
    return decided(np.random.default_rng(), p, q, draft_tokens.tolist(), weights=without_firsts)


MUTANT = planted_verifier(
    verify,
    "block-edge-off-by-one",
    "never replaces by the first token of a block",
    category="N",
    citation="plausible",
    killed_by="call_law",
    make=at_large,
)
