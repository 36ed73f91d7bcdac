"""The drafter runs on padded rows, and slots and lengths are not told of it: padding stands before the text."""

from __future__ import annotations

from specverify.mutants.draft_side.stale import drafting_from
from specverify.mutants.mutant import SHORT, planted
from specverify.reference import Tokens


def see(tokens: Tokens, known: Tokens, first: bool) -> Tokens:
    """Put two padding tokens before the text."""
    return (0, 0, *tokens)


MUTANT = planted(
    "speculative-sampling",
    "padding-in-the-drafter",
    "drafts behind padding",
    drafting_from(see),
    category="Q",
    citation="vLLM PR #26498, issue #26191",
    killed_by="acceptance_is_optimal",
    examples=SHORT,
)
