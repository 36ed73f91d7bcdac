"""The bonus token's slot in the drafter's cache holds another token: later drafts are about that text."""

from __future__ import annotations

from specverify.mutants.draft_side.stale import drafting_from
from specverify.mutants.mutant import SHORT, planted
from specverify.reference import Tokens


def see(tokens: Tokens, known: Tokens, first: bool) -> Tokens:
    """Show token 0 in the place of the last committed token to all drafts but the first."""
    n = len(known)
    return tokens if first or len(tokens) == n else (*tokens[: n - 1], 0, *tokens[n:])


MUTANT = planted(
    "speculative-sampling",
    "bonus-slot-of-another",
    "drafts behind a wrong bonus token",
    drafting_from(see),
    category="Q",
    citation="vLLM PRs #9730, #5765, #4212",
    killed_by="acceptance_is_optimal",
    examples=SHORT,
)
