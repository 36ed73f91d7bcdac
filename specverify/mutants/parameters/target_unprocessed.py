"""The target is scored with default parameters while q is filtered."""

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
    """Speculative sampling of the raw target."""
    p, q = softmax_rows(target_logits), processed_rows(draft_logits, temperature, top_k, top_p, min_p)
    return decided(np.random.default_rng(), p, q, draft_tokens.tolist())


MUTANT = planted_verifier(
    verify,
    "target-unprocessed",
    "processes q alone",
    category="F",
    citation="vLLM issue #9834, PR #10198",
    killed_by="law_is_target",
    gammas=(1,),
    setting=(("temperature", 1.5), ("top_k", 2), ("top_p", 0.8)),
)
