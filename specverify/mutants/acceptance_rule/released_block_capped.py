"""The released hierarchical rule with its end capped: another law than the one that is declared for it."""

from __future__ import annotations

from specverify.mutants.mutant import planted, with_parts
from specverify.reference.algorithms.hierarchical import backward

MUTANT = planted(
    "hierarchical-released",
    "released-block-capped",
    "caps the ratio of the whole block",
    with_parts("hierarchical-released", verifier=backward(capped_end=True)),
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)
