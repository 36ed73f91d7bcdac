"""A floor against divisions by zero gives the padded tail of the vocabulary a probability."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import at_large, decided, planted_verifier

FLOOR = 1e-9


def floored(p: Any, q: Any) -> Any:
    """Return ``max(p - q, FLOOR)``."""
    return np.maximum(p - q, FLOOR)


def verify(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling with a floor under the residual."""
    return decided(np.random.default_rng(), p, q, draft_tokens.tolist(), weights=floored)


MUTANT = planted_verifier(
    verify,
    "padded-tail-has-mass",
    "replaces by tokens that are padding",
    category="E",
    citation="plausible",
    killed_by="call_law",
    make=at_large,
)
