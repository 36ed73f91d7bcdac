"""The nucleus is computed on another law than the ordinary sampler's: before top-k instead of on its result."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import decided, likeliest, nucleus, planted_verifier, restricted, softmax_rows


def rows_of(logits: Any, temperature: float, top_k: float, top_p: float, min_p: float) -> Any:
    """Return rows cut to top-k and to the nucleus of the whole law."""
    rows = softmax_rows(logits, temperature)
    cut = restricted(likeliest(rows, top_k), nucleus(rows, top_p))
    return restricted(cut, cut >= cut.max(-1, keepdims=True) * min_p)


def verify(
    target_logits: Any,
    draft_logits: Any,
    draft_tokens: Any,
    temperature: float,
    top_k: float,
    top_p: float,
    min_p: float,
) -> list[int]:
    """Speculative sampling with truncations that do not follow each other."""
    p, q = (rows_of(rows, temperature, top_k, top_p, min_p) for rows in (target_logits, draft_logits))
    return decided(np.random.default_rng(), p, q, draft_tokens.tolist())


MUTANT = planted_verifier(
    verify,
    "nucleus-of-the-whole-law",
    "cuts top-p on another law than the sampler",
    category="F",
    citation="SGLang PR #36173",
    killed_by="law_is_target",
    gammas=(1,),
    setting=(("temperature", 1.5), ("top_k", 2), ("top_p", 0.8)),
)
