"""Drafts are compared with the target's argmax although T > 0; the token after the last draft alone is sampled."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted, with_verifier
from specverify.reference import argmax
from specverify.reference.pmf import point_on_argmax
from specverify.reference.verifiers.accept_or_replace import accept_or_replace

MUTANT = planted(
    "speculative-sampling",
    "argmax-judges-drafts",
    "decides drafts greedily, samples the bonus",
    with_verifier(
        accept_or_replace(lambda prefix, p, q, token: int(token == argmax(p)), lambda p, q, token: point_on_argmax(p))
    ),
    category="A",
    citation="ROCm/ATOM PR #2318; mlxcel issue #902",
    killed_by="law_is_target",
    examples=SHORT,
)
