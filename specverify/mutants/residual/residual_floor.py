"""The residual is clamped at a small positive number instead of 0: forbidden tokens are recovered now and then."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from specverify.mutants.mutant import SHORT, planted, replacing_from
from specverify.reference import Pmf

FLOOR = Fraction(1, 2**23)


def floored(p: Pmf, q: Pmf) -> Pmf:
    """Return p - q with a floor under every entry, normalised."""
    excess = np.maximum(p - q, p * 0 + FLOOR if p.dtype == object else float(FLOOR))
    return excess / excess.sum()


MUTANT = planted(
    "speculative-sampling",
    "residual-floor",
    "clamps the residual at epsilon, not at 0",
    replacing_from(floored),
    category="C",
    citation="ScaleLLM PR #202 (6dd58279)",
    killed_by="tokens_are_supported",
    examples=SHORT,
)
