"""Copied tokens carry a made-up probability of 1 into the ratio as the target's mass: every copy is accepted."""

from __future__ import annotations

from specverify.mutants.mutant import planted, with_parts
from specverify.reference.verifiers.accept_or_replace import accept_or_replace

MUTANT = planted(
    "prompt-lookup",
    "copier-always-believed",
    "accepts whatever was copied",
    with_parts("prompt-lookup", verifier=accept_or_replace(lambda prefix, p, q, token: 1, lambda p, q, token: p)),
    category="B",
    citation="openvino.genai PR #2331 (18b7b7818)",
    killed_by="tokens_are_supported",
    examples=({"max_ngram": 2, "gamma": 2},),
)
