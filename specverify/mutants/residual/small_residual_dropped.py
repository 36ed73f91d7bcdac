"""A residual below a tolerance counts as empty and p is drawn from: wrong by as much as p and q are apart there."""

from __future__ import annotations

from fractions import Fraction

from specverify.mutants.mutant import SHORT, planted, replacing_from
from specverify.reference import Pmf, overlap, residual

TOLERANCE = Fraction(1, 10**6)


def replacement(p: Pmf, q: Pmf) -> Pmf:
    """Return the normalised residual, or p where its mass is below the tolerance."""
    return residual(p, q) if 1 - overlap(p, q) > TOLERANCE else p


MUTANT = planted(
    "speculative-sampling",
    "small-residual-dropped",
    "draws from p where p and q are apart by less than 1e-6",
    replacing_from(replacement),
    category="E",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
