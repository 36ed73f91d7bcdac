"""A kernel sorts no more than 1024 candidates, and draws among those whatever top-k says."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import at_large, decided, owed, planted_verifier

CANDIDATES = 1024


def likeliest(p: Any, q: Any) -> Any:
    """Return the weights of a replacement, 0 for all but the heaviest."""
    weights = owed(p, q)
    return np.where(weights >= np.sort(weights)[-min(CANDIDATES, len(weights))], weights, 0.0)


def verify(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling that replaces by one of 1024 candidates."""
    return decided(np.random.default_rng(), p, q, draft_tokens.tolist(), weights=likeliest)


MUTANT = planted_verifier(
    verify,
    "candidates-cut-at-1024",
    "replaces by the 1024 likeliest tokens alone",
    category="F",
    citation="plausible",
    killed_by="call_law",
    make=at_large,
)
