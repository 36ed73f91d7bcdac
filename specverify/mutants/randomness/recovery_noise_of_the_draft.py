"""The replacement's Gumbel noise is the draft's: it is drawn given that the draft won, so neighbours of it lose twice.

Both come from one counter-based generator at (seed, position). The law of the second winner given the first is exact:
see ``verifiers.gumbel_coupling``.
"""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted, with_verifier
from specverify.reference import accept_probability, residual
from specverify.reference.verifiers.accept_or_replace import accept_or_replace
from specverify.reference.verifiers.gumbel_coupling import draft_given_target

MUTANT = planted(
    "speculative-sampling",
    "recovery-noise-of-the-draft",
    "races p - q over the noise that drew d",
    with_verifier(
        accept_or_replace(
            lambda prefix, p, q, token: accept_probability(p, q, token),
            lambda p, q, token: draft_given_target(q, residual(p, q), token),
        )
    ),
    category="D",
    citation="vLLM PRs #54282, #47386; local-inference-lab/vllm #205, #653",
    killed_by="law_is_target",
    examples=SHORT,
)
