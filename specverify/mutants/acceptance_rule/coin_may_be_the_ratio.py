"""A verifier's coin is compared with <=: a uniform of exactly 0 keeps a draft that the truncated target forbids."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import drawn, owed, planted_verifier, processed_rows


def verify(
    target_logits: Any,
    draft_logits: Any,
    draft_tokens: Any,
    temperature: float,
    top_k: float,
    top_p: float,
    min_p: float,
) -> list[int]:
    """Speculative sampling with ``u <= p/q``."""
    p, q = (processed_rows(rows, temperature, top_k, top_p, min_p) for rows in (target_logits, draft_logits))
    rng, drafts = np.random.default_rng(), draft_tokens.tolist()
    for i, token in enumerate(drafts):
        if not rng.random() <= p[i, token] / q[i, token]:
            return [*drafts[:i], drawn(rng, owed(p[i], q[i]))]
    return [*drafts, drawn(rng, p[len(drafts)])]


MUTANT = planted_verifier(
    verify,
    "coin-may-be-the-ratio",
    "keeps a draft that top-k removed when u is 0",
    category="A",
    citation="SGLang issue #35771",
    killed_by="support_at_boundary_draws",
    setting=(("temperature", 1.0), ("top_k", 2)),
)
