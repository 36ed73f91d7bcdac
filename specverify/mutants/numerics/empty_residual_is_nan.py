"""An empty residual is divided by its sum, 0/0 = NaN: no comparison is true and token 0 comes out.

The denominator q + 1e-10 is there against a division by zero; it rejects, rarely, where p = q.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import decided, excess, planted_verifier


def normalised(p: Any, q: Any) -> Any:
    """Return the normalised residual; what a lookup makes of NaN is token 0."""
    with np.errstate(invalid="ignore"):
        found = excess(p, q) / excess(p, q).sum()
    return np.eye(len(p))[0] if np.isnan(found).all() else found


def verify(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling with a guarded ratio and no guard in the residual."""
    return decided(
        np.random.default_rng(),
        p,
        q,
        draft_tokens.tolist(),
        accept=lambda p, q, token: p[token] / (q[token] + 1e-10),
        weights=normalised,
    )


MUTANT = planted_verifier(
    verify,
    "empty-residual-is-nan",
    "divides an empty residual by its sum",
    category="E",
    citation="romsto/Speculative-Decoding speculative_decoding.py:17-19 at db7db67",
    killed_by="tokens_are_supported",
)
