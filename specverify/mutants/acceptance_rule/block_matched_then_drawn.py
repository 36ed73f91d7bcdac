"""A block of drafts is matched with draws of p; the one that differs is drawn again."""

from __future__ import annotations

from specverify.mutants.mutant import planted, with_parts
from specverify.reference.verifiers.accept_or_replace import accept_or_replace

AGAIN = accept_or_replace(accept=lambda prefix, p, q, token: p[token], replacement=lambda p, q, token: p)
"""A draft d so comes out with probability p(d) (2 - p(d))."""


MUTANT = planted(
    "dflash",
    "block-matched-then-drawn",
    "draws again where the draw differed",
    with_parts("dflash", verifier=AGAIN),
    category="A",
    citation="plausible",
    killed_by="law_is_target",
)
