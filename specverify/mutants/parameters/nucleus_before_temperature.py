"""The nucleus is computed on the untempered logits, and temperature applied to what it keeps."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import decided, likeliest, nucleus, planted_verifier, restricted, softmax_rows


def rows_of(logits: Any, temperature: float, top_k: float, top_p: float, min_p: float) -> Any:
    """Return rows truncated at T = 1 and tempered afterwards."""
    mask = nucleus(likeliest(softmax_rows(logits), top_k), top_p)
    rows = restricted(likeliest(softmax_rows(logits, temperature), top_k), mask)
    return restricted(rows, rows >= rows.max(-1, keepdims=True) * min_p)


def verify(
    target_logits: Any,
    draft_logits: Any,
    draft_tokens: Any,
    temperature: float,
    top_k: float,
    top_p: float,
    min_p: float,
) -> list[int]:
    """Speculative sampling with the order of two warpers exchanged."""
    p, q = (rows_of(rows, temperature, top_k, top_p, min_p) for rows in (target_logits, draft_logits))
    return decided(np.random.default_rng(), p, q, draft_tokens.tolist())


MUTANT = planted_verifier(
    verify,
    "nucleus-before-temperature",
    "computes top-p at temperature 1",
    category="F",
    citation="romsto/Speculative-Decoding utils/logits_processor.py:13-15, 73-81, 98-103 at db7db67",
    killed_by="law_is_target",
    gammas=(1,),
    setting=(("temperature", 1.5), ("top_k", 2), ("top_p", 0.8)),
)
