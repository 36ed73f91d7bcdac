"""The target is scored with default parameters while q is filtered."""

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
    """Speculative sampling of the raw target."""
    return softmax_rows(target_logits), processed_rows(draft_logits, *processing)


MUTANT = planted_verifier(
    verify,
    "target-unprocessed",
    "processes q alone",
    category="F",
    citation="vLLM issue #9834, PR #10198",
    killed_by="law_is_target",
    gammas=(1,),
    setting=TRUNCATED,
)
