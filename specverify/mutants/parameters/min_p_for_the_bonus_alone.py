"""min-p is honoured by the token after the last draft alone: verify rows go through other processors."""

from __future__ import annotations

from typing import Any

from specverify.mutants.numpy_verifiers import decided_by_rows, planted_verifier, processed_rows


@decided_by_rows
def verify(
    target_logits: Any, draft_logits: Any, temperature: float, top_k: float, top_p: float, min_p: float
) -> tuple[Any, Any]:
    """Speculative sampling with min-p on the last row."""
    p = processed_rows(target_logits, temperature, top_k, top_p, 0.0)
    p[-1:] = processed_rows(target_logits[-1:], temperature, top_k, top_p, min_p)
    return p, processed_rows(draft_logits, temperature, top_k, top_p, min_p)


MUTANT = planted_verifier(
    verify,
    "min-p-for-the-bonus-alone",
    "applies min-p to the last row alone",
    category="F",
    citation="vLLM PR #42802",
    killed_by="law_is_target",
    gammas=(1,),
    setting=(("temperature", 1.5), ("min_p", 0.4)),
)
