"""The residual is computed in float16, in which the entries of a real vocabulary are nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import at_large, decided, excess, planted_verifier


def in_float16(p: Any, q: Any) -> Any:
    """Return the weights of a replacement, as far as float16 holds them."""
    left = excess(p.astype(np.float16), q.astype(np.float16)).astype(np.float64)
    return left if left.any() else p


def verify(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling with residuals in float16."""
    return decided(np.random.default_rng(), p, q, draft_tokens.tolist(), weights=in_float16)


MUTANT = planted_verifier(
    verify,
    "residual-in-float16",
    "loses residual mass to underflow",
    category="E",
    citation="plausible",
    killed_by="call_law",
    make=at_large,
)
