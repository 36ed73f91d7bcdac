"""A verifier for greedy drafts takes sampled ones too, with q known at the drafted token alone."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted, with_verifier
from specverify.reference import accept_probability, excess_law, one_hot
from specverify.reference.verifiers.accept_or_replace import accept_or_replace

MUTANT = planted(
    "speculative-sampling",
    "scalar-q",
    "takes q to be 0 but at the draft",
    with_verifier(
        accept_or_replace(
            lambda prefix, p, q, token: accept_probability(p, q, token),
            lambda p, q, token: excess_law(p, one_hot(token, p) * q[token]),
        )
    ),
    category="B",
    citation="xLLM PR #2175 (6337bec39)",
    killed_by="law_is_target",
    examples=SHORT,
)
