"""q is left at temperature 1 and whole, while drafts come from the processed one."""

from __future__ import annotations

from typing import Any

from specverify.mutants.numpy_verifiers import (
    TRUNCATED,
    decided_by_rows,
    planted_verifier,
    processed_rows,
    softmax_rows,
)


@decided_by_rows
def verify(target_logits: Any, draft_logits: Any, *processing: float) -> tuple[Any, Any]:
    """Speculative sampling with the raw q in the ratio."""
    return processed_rows(target_logits, *processing), softmax_rows(draft_logits)


MUTANT = planted_verifier(
    verify,
    "draft-unprocessed",
    "processes p alone",
    category="F",
    citation="transformers issue #47932, PR #47961",
    killed_by="law_is_target",
    gammas=(1,),
    setting=TRUNCATED,
)
