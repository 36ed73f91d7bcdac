"""The ratio is computed with a q of few bits, in which unlikely drafts have q = 0: p/0 accepts even where p is 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import drawn, excess, planted_verifier

STEP = 0.25


def verify(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling with masses of q below ``STEP`` rounded to 0."""
    rng, drafts = np.random.default_rng(), draft_tokens.tolist()
    for i, token in enumerate(drafts):
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = p[i, token] / (q[i, token] if q[i, token] >= STEP else np.float64(0))
        if rng.random() >= ratio:
            return [*drafts[:i], drawn(rng, excess(p[i], q[i]))]
    return [*drafts, drawn(rng, p[-1])]


MUTANT = planted_verifier(
    verify,
    "draft-mass-underflows",
    "accepts 0/0 where q is rounded to 0",
    category="E",
    citation="plausible",
    killed_by="tokens_are_supported",
)
