"""Each round tokenises the text anew for the drafter and puts a beginning-of-sequence token before it."""

from __future__ import annotations

from specverify.mutants.draft_side.stale import drafting_from
from specverify.mutants.mutant import SHORT, planted
from specverify.reference import Tokens


def see(tokens: Tokens, known: Tokens, first: bool) -> Tokens:
    """Put one more token 0 before the text, from round 2 on."""
    return tokens if first else (0, *tokens)


MUTANT = planted(
    "speculative-sampling",
    "bos-at-every-round",
    "drafts behind a second BOS",
    drafting_from(see),
    category="N",
    citation="transformers PR #46124",
    killed_by="acceptance_is_optimal",
    examples=SHORT,
)
