"""The uniform is a constant 0, so log u is minus infinity and every draft of positive target probability stays."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted, with_verifier
from specverify.reference import residual
from specverify.reference.verifiers.accept_or_replace import accept_or_replace

MUTANT = planted(
    "speculative-sampling",
    "coins-always-zero",
    "compares p/q with 0 instead of a uniform",
    with_verifier(accept_or_replace(lambda prefix, p, q, token: int(p[token] > 0), lambda p, q, token: residual(p, q))),
    category="A",
    citation="vllm-ascend issue #13730, PR #13470, commit 15c3f9ae45",
    killed_by="law_is_target",
    examples=SHORT,
)
