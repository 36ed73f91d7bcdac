"""The drafter goes on from the keys and values of the step before: it does not see what was committed since."""

from __future__ import annotations

from specverify.mutants.draft_side.stale import drafting_from
from specverify.mutants.mutant import SHORT, planted
from specverify.reference import Tokens


def see(tokens: Tokens, known: Tokens, first: bool) -> Tokens:
    """Show the first token and the new drafts, from round 2 on."""
    return tokens if first else tokens[:1] + tokens[len(known) :]


MUTANT = planted(
    "speculative-sampling",
    "keys-of-the-last-step",
    "drafts from an old step's cache",
    drafting_from(see),
    category="Q",
    citation="transformers issue #32366, PR #32370",
    killed_by="acceptance_is_optimal",
    examples=SHORT,
)
