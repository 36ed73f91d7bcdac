"""The residual is |p - q| instead of its positive part: what q has too much of comes back."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted, replacing_from
from specverify.reference import Pmf


def distance(p: Pmf, q: Pmf) -> Pmf:
    """Return ``norm(|p - q|)``."""
    return abs(p - q) / abs(p - q).sum()


MUTANT = planted(
    "speculative-sampling",
    "residual-absolute",
    "replaces from |p - q|",
    replacing_from(distance),
    category="C",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
