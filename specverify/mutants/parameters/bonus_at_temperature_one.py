"""The token after the last draft is sampled from the raw logits."""

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
    """Speculative sampling whose bonus row is not processed."""
    p, q = (processed_rows(logits, *processing) for logits in (target_logits, draft_logits))
    p[-1:] = softmax_rows(target_logits[-1:])
    return p, q


MUTANT = planted_verifier(
    verify,
    "bonus-at-temperature-one",
    "does not process the bonus row",
    category="F",
    citation="EAGLE before commit bfeb532",
    killed_by="law_is_target",
    gammas=(1,),
    setting=TRUNCATED,
)
