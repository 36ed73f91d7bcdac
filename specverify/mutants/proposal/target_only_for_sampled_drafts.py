"""Drafts sampled from q are verified as point masses, because q was not passed on: exact, and accepted too rarely.

Given d, keeping it with p(d) and else drawing p without d is a draw from p, so the law survives.
"""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted, with_verifier
from specverify.reference import one_hot, residual
from specverify.reference.verifiers.accept_or_replace import accept_or_replace

MUTANT = planted(
    "speculative-sampling",
    "target-only-for-sampled-drafts",
    "verifies a sampled draft as a point mass",
    with_verifier(
        accept_or_replace(lambda prefix, p, q, token: p[token], lambda p, q, token: residual(p, one_hot(token, p)))
    ),
    category="B",
    citation="vLLM issue #40149, PR #40269",
    killed_by="acceptance_is_optimal",
    examples=SHORT,
)
