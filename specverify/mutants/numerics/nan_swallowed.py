"""NaN of 0/0 and 0 times infinity is taken for no excess: tokens that q excludes are never recovered.

Where nothing else is left the first index wins, whatever p says of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import decided, planted_verifier


def excess_by_ratio(p: Any, q: Any) -> Any:
    """Return q (p/q - 1)+, NaN as 0; all of it on token 0 if nothing is left."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.nan_to_num(q * np.maximum(p / q - 1, 0), nan=0.0)
    return found if found.any() else np.eye(len(p))[0]


def verify(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling with a residual by ratios."""
    return decided(np.random.default_rng(), p, q, draft_tokens.tolist(), weights=excess_by_ratio)


MUTANT = planted_verifier(
    verify,
    "nan-swallowed",
    "takes NaN in the residual for 0",
    category="E",
    citation="vLLM PR #41834",
    killed_by="tokens_are_supported",
)
