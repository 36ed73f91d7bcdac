"""Each position divides the logits by the temperature in place, through a view of them all."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import TRUNCATED, drawn, owed, planted_verifier, processed_rows


def verify(
    target_logits: Any,
    draft_logits: Any,
    draft_tokens: Any,
    temperature: float,
    top_k: float,
    top_p: float,
    min_p: float,
) -> list[int]:
    """Speculative sampling whose later rows are tempered again and again."""
    logits, scale, rng = target_logits.copy(), temperature or 1.0, np.random.default_rng()
    q, drafts = processed_rows(draft_logits, temperature, top_k, top_p, min_p), draft_tokens.tolist()
    for i, token in enumerate([*drafts, -1]):
        logits /= scale
        p = processed_rows(logits[i : i + 1], 1.0 if temperature else 0.0, top_k, top_p, min_p)[0]
        if token < 0:
            break
        if not rng.random() * q[i, token] < p[token]:
            return [*drafts[:i], drawn(rng, owed(p, q[i]))]
    return [*drafts, drawn(rng, p)]


MUTANT = planted_verifier(
    verify,
    "temperature-in-place",
    "tempers later rows several times",
    category="F",
    citation="romsto/Speculative-Decoding utils/logits_processor.py:62,95 at db7db67",
    killed_by="law_is_target",
    gammas=(1,),
    setting=TRUNCATED,
)
