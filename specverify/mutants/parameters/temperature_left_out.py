"""The verification takes no temperature: ratio and residual are those of T = 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import decided, planted_verifier, processed_rows


def verify(
    target_logits: Any,
    draft_logits: Any,
    draft_tokens: Any,
    temperature: float,
    top_k: float,
    top_p: float,
    min_p: float,
) -> list[int]:
    """Speculative sampling of processed drafts by pmfs at T = 1."""
    p, q = (processed_rows(rows, 1.0, top_k, top_p, min_p) for rows in (target_logits, draft_logits))
    return decided(np.random.default_rng(), p, q, draft_tokens.tolist())


MUTANT = planted_verifier(
    verify,
    "temperature-left-out",
    "verifies at temperature 1",
    category="F",
    citation="lattice issue #388",
    killed_by="law_is_target",
    gammas=(1,),
    setting=(("temperature", 1.5), ("top_k", 2), ("top_p", 0.8)),
)
