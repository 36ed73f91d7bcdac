"""The nucleus is computed on the untempered logits, and temperature applied to what it keeps."""

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
    """Return rows truncated at T = 1 and tempered afterwards."""
    mask = nucleus(likeliest(softmax_rows(logits), top_k), top_p)
    rows = restricted(likeliest(softmax_rows(logits, temperature), top_k), mask)
    return restricted(rows, rows >= rows.max(-1, keepdims=True) * min_p)


@decided_by_rows
def verify(target_logits: Any, draft_logits: Any, *processing: float) -> tuple[Any, Any]:
    """Speculative sampling with the order of two warpers exchanged."""
    return rows_of(target_logits, *processing), rows_of(draft_logits, *processing)


MUTANT = planted_verifier(
    verify,
    "nucleus-before-temperature",
    "computes top-p at temperature 1",
    category="F",
    citation="romsto/Speculative-Decoding utils/logits_processor.py:13-15, 73-81, 98-103 at db7db67",
    killed_by="law_is_target",
    gammas=(1,),
    setting=TRUNCATED,
)
