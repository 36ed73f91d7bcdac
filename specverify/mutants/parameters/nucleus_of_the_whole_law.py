"""The nucleus is computed on another law than the ordinary sampler's: before top-k instead of on its result."""

from __future__ import annotations

from typing import Any

from specverify.mutants.numpy_verifiers import (
    TRUNCATED,
    decided_by_rows,
    likeliest,
    nucleus,
    planted_verifier,
    restricted,
    softmax_rows,
)


def rows_of(logits: Any, temperature: float, top_k: float, top_p: float, min_p: float) -> Any:
    """Return rows cut to top-k and to the nucleus of the whole law."""
    rows = softmax_rows(logits, temperature)
    cut = restricted(likeliest(rows, top_k), nucleus(rows, top_p))
    return restricted(cut, cut >= cut.max(-1, keepdims=True) * min_p)


@decided_by_rows
def verify(target_logits: Any, draft_logits: Any, *processing: float) -> tuple[Any, Any]:
    """Speculative sampling with truncations that do not follow each other."""
    return rows_of(target_logits, *processing), rows_of(draft_logits, *processing)


MUTANT = planted_verifier(
    verify,
    "nucleus-of-the-whole-law",
    "cuts top-p on another law than the sampler",
    category="F",
    citation="SGLang PR #36173",
    killed_by="law_is_target",
    gammas=(1,),
    setting=TRUNCATED,
)
