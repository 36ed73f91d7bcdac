"""The token after the last draft is sampled from the raw logits."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import decided, planted_verifier, processed_rows, softmax_rows


def verify(
    target_logits: Any,
    draft_logits: Any,
    draft_tokens: Any,
    temperature: float,
    top_k: float,
    top_p: float,
    min_p: float,
) -> list[int]:
    """Speculative sampling whose bonus row is not processed."""
    p, q = (processed_rows(rows, temperature, top_k, top_p, min_p) for rows in (target_logits, draft_logits))
    p[-1:] = softmax_rows(target_logits[-1:])
    return decided(np.random.default_rng(), p, q, draft_tokens.tolist())


MUTANT = planted_verifier(
    verify,
    "bonus-at-temperature-one",
    "does not process the bonus row",
    category="F",
    citation="EAGLE before commit bfeb532",
    killed_by="law_is_target",
    gammas=(1,),
    setting=(("temperature", 1.5), ("top_k", 2), ("top_p", 0.8)),
)
