"""NASD's release with the draw that missed emitted: lossless, and so not what is declared for it."""

from __future__ import annotations

from specverify.mutants.mutant import planted, with_parts
from specverify.reference.verifiers.sample_and_match import sample_and_match

MUTANT = planted(
    "nasd-released",
    "released-miss-emitted",
    "emits the draw that missed",
    with_parts("nasd-released", verifier=sample_and_match),
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)
