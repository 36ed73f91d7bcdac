"""The residual is (q - p)+: a rejected draft is replaced by what q has too much of already."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted, replacing_from
from specverify.reference import residual

MUTANT = planted(
    "speculative-sampling",
    "residual-exchanged",
    "replaces from (q - p)+",
    replacing_from(lambda p, q: residual(q, p)),
    category="C",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
