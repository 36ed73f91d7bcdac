"""NaN logits are replaced by 0, which is a high value: masked tokens become likely."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import decided, likeliest, planted_verifier, softmax_rows


def processed(logits: Any, temperature: float, top_k: float) -> Any:
    """Mask with minus infinity, then multiply by the mask: 0 times infinity is NaN."""
    keep = likeliest(softmax_rows(logits), top_k) > 0
    with np.errstate(invalid="ignore"):
        return softmax_rows(np.nan_to_num(np.where(keep, logits, -np.inf) * keep, nan=0.0), temperature)


def verify(target_logits: Any, draft_logits: Any, draft_tokens: Any, temperature: float, top_k: float) -> list[int]:
    """Speculative sampling of sanitised logits."""
    p, q = (processed(rows, temperature, top_k) for rows in (target_logits, draft_logits))
    return decided(np.random.default_rng(), p, q, draft_tokens.tolist())


def control(target_logits: Any, draft_logits: Any, draft_tokens: Any, temperature: float, top_k: float) -> list[int]:
    """Speculative sampling of the likeliest tokens."""
    p, q = (likeliest(softmax_rows(rows, temperature), top_k) for rows in (target_logits, draft_logits))
    return decided(np.random.default_rng(), p, q, draft_tokens.tolist())


MUTANT = planted_verifier(
    verify,
    "nan-as-zero-logit",
    "replaces NaN logits by 0",
    category="E",
    citation="vllm-ascend PRs #14116, #14098",
    killed_by="law_is_target",
    control=control,
    gammas=(1,),
    setting=(("temperature", 0.7), ("top_k", 2)),
)
