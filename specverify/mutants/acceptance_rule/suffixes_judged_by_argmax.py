"""Copied drafts stay where they are the target's argmax, and only what follows is sampled."""

from __future__ import annotations

from specverify.mutants.mutant import planted, with_parts
from specverify.reference.verifiers.match_argmax_then_sample import match_argmax_then_sample

MUTANT = planted(
    "suffix-decoding",
    "suffixes-judged-by-argmax",
    "decides copies greedily, samples what follows",
    with_parts("suffix-decoding", verifier=match_argmax_then_sample),
    category="A",
    citation="plausible",
    killed_by="law_is_target",
)
