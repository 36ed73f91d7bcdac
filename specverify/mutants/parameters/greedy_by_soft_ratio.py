"""At temperature 0 the argmax draft is verified by soft p and q, and replaced by the argmax of p - q."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import decided, excess, planted_verifier, processed_rows, softmax_rows


def verify(
    target_logits: Any,
    draft_logits: Any,
    draft_tokens: Any,
    temperature: float,
    top_k: float,
    top_p: float,
    min_p: float,
) -> list[int]:
    """Greedy decoding as sampling with an argmax at the end."""
    rng, drafts = np.random.default_rng(), draft_tokens.tolist()
    if temperature > 0:
        p, q = (processed_rows(rows, temperature, top_k, top_p, min_p) for rows in (target_logits, draft_logits))
        return decided(rng, p, q, drafts)
    p, q = softmax_rows(target_logits), softmax_rows(draft_logits)
    for i, token in enumerate(drafts):
        if not rng.random() * q[i, token] < p[i, token]:
            return [*drafts[:i], int(excess(p[i], q[i]).argmax())]
    return [*drafts, int(p[-1].argmax())]


MUTANT = planted_verifier(
    verify,
    "greedy-by-soft-ratio",
    "decides T = 0 by soft p/q",
    category="F",
    citation="romsto/Speculative-Decoding speculative_decoding.py:121-168 at db7db67 (its default)",
    killed_by="law_is_target",
    gammas=(1,),
    setting=(("temperature", 0.0),),
)
