"""Logits are divided by a temperature near 0 as they are: NaN, and no comparison with NaN rejects."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import drawn, excess, planted_verifier, softmax_rows

NEAR_ZERO = (("temperature", 1e-6),)


def decide(p: Any, q: Any, drafts: list[int]) -> list[int]:
    """Reject only if the coin is above the ratio; a NaN row is won by token 0."""
    rng = np.random.default_rng()
    for i, token in enumerate(drafts):
        if rng.random() >= p[i, token] / q[i, token]:
            return [*drafts[:i], drawn(rng, excess(p[i], q[i]))]
    return [*drafts, 0 if np.isnan(p[-1]).any() else drawn(rng, p[-1])]


def verify(target_logits: Any, draft_logits: Any, draft_tokens: Any, temperature: float) -> list[int]:
    """Speculative sampling of softmax(logits / T) as it is written in books."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        weights = [np.exp(rows / temperature) for rows in (target_logits, draft_logits)]
        p, q = (rows / rows.sum(-1, keepdims=True) for rows in weights)
        return decide(p, q, draft_tokens.tolist())


def control(target_logits: Any, draft_logits: Any, draft_tokens: Any, temperature: float) -> list[int]:
    """Speculative sampling with the largest logit taken off."""
    p, q = (softmax_rows(rows, temperature) for rows in (target_logits, draft_logits))
    return decide(p, q, draft_tokens.tolist())


MUTANT = planted_verifier(
    verify,
    "overflow-near-temperature-zero",
    "NaN at small T accepts every draft",
    category="E",
    citation="NeMo Automodel PR #3627; romsto/Speculative-Decoding speculative_decoding.py:143 at db7db67",
    killed_by="law_is_target",
    control=control,
    setting=NEAR_ZERO,
)
