"""A block is kept with the plain product of its ratios, while its prefixes know the cap."""

from __future__ import annotations

from specverify.mutants.mutant import planted, with_parts
from specverify.reference.algorithms.hierarchical import backward

MUTANT = planted(
    "hierarchical",
    "block-end-not-capped",
    "keeps the whole block with its uncapped ratio",
    with_parts("hierarchical", verifier=backward(capped_end=False)),
    category="A",
    citation="ZhouYuxuanYX/Hierarchical-Speculative-Decoding generation/utils.py at b8575e2",
    killed_by="law_is_target",
)
