"""Hashes are divided by 2^32 and rounded to float32, so the largest give a uniform of 1: a sure draft is rejected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import drawn, excess
from specverify.mutants.small_engine import engine_of, planted_engine


def decide(rng: Any, p: Any, q: Any, drafts: Sequence[int]) -> list[int]:
    """Speculative sampling with uniforms in [0, 1]; token 0 wins an empty residual."""
    for i, token in enumerate(drafts):
        coin = np.float32(rng.random())
        if not coin * q[i, token] < p[i, token]:
            weights = excess(p[i], q[i])
            return [*drafts[:i], drawn(rng, weights) if weights.any() else int(weights.argmax())]
    return [*drafts, drawn(rng, p[len(drafts)])]


MUTANT = planted_engine(
    engine_of(decide),
    "coin-rounded-to-one",
    "has uniforms in [0, 1]",
    category="D",
    citation="SGLang PR #30822",
    killed_by="support_at_boundary_draws",
    control=engine_of(),
    decide=decide,
)
