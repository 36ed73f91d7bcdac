"""The verification takes no temperature: ratio and residual are those of T = 1."""

from __future__ import annotations

from typing import Any

from specverify.mutants.numpy_verifiers import TRUNCATED, decided_by_rows, planted_verifier, processed_rows


@decided_by_rows
def verify(target_logits: Any, draft_logits: Any, _: float, *truncations: float) -> tuple[Any, Any]:
    """Speculative sampling of processed drafts by pmfs at T = 1."""
    return processed_rows(target_logits, 1.0, *truncations), processed_rows(draft_logits, 1.0, *truncations)


MUTANT = planted_verifier(
    verify,
    "temperature-left-out",
    "verifies at temperature 1",
    category="F",
    citation="lattice issue #388",
    killed_by="law_is_target",
    gammas=(1,),
    setting=TRUNCATED,
)
