"""The generator is made anew from one seed in every call: each round is decided by the numbers of the first."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import decided, planted_verifier, processed_rows

SEED = 0


def verify(
    target_logits: Any,
    draft_logits: Any,
    draft_tokens: Any,
    temperature: float,
    top_k: float,
    top_p: float,
    min_p: float,
) -> list[int]:
    """Speculative sampling of processed logits by a stream that begins here; one round by itself has the right law."""
    p, q = (processed_rows(rows, temperature, top_k, top_p, min_p) for rows in (target_logits, draft_logits))
    return decided(np.random.default_rng(SEED), p, q, draft_tokens.tolist())


MUTANT = planted_verifier(
    verify,
    "seeded-every-call",
    "starts its stream over in each call",
    category="D",
    citation="plausible",
    killed_by="draws_are_independent",
    setting=(("temperature", 1.0),),
)
