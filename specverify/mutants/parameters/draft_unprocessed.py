"""q is left at temperature 1 and whole, while drafts come from the processed one."""

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
    """Speculative sampling with the raw q in the ratio."""
    p, q = processed_rows(target_logits, temperature, top_k, top_p, min_p), softmax_rows(draft_logits)
    return decided(np.random.default_rng(), p, q, draft_tokens.tolist())


MUTANT = planted_verifier(
    verify,
    "draft-unprocessed",
    "processes p alone",
    category="F",
    citation="transformers issue #47932, PR #47961",
    killed_by="law_is_target",
    gammas=(1,),
    setting=(("temperature", 1.5), ("top_k", 2), ("top_p", 0.8)),
)
