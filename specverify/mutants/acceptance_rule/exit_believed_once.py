"""Kangaroo keeps the first draft of the early exit without asking."""

from __future__ import annotations

from specverify.mutants.mutant import planted, with_parts
from specverify.reference import Draft, Draws, LanguageModel, Tokens, Verified, chain
from specverify.reference.verifiers.greedy_match import greedy_match


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Match greedily from the second draft on."""
    first = draft.tokens[:1]
    rest = greedy_match(draws, target, prefix + first, chain(draft.tokens[1:], draft.pmfs[1:]))
    return Verified(first + rest.tokens, len(first) + rest.accepted)


MUTANT = planted(
    "kangaroo",
    "exit-believed-once",
    "keeps the first draft of every round",
    with_parts("kangaroo", verifier=verify),
    category="A",
    citation="plausible",
    killed_by="greedy_is_argmax",
)
