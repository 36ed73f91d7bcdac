"""Rounds draft from a cache that lacks the last token, though the drafting shown is up to date.

The text is exact, and no claim of acceptance falls, for sample-and-match makes none: only the drafts tell.
"""

from __future__ import annotations

from specverify.mutants.draft_side.stale import drafting_from
from specverify.mutants.mutant import SHORT, planted
from specverify.reference import Tokens


def see(tokens: Tokens, known: Tokens, first: bool) -> Tokens:
    """Show the drafter everything but the last token."""
    return tokens[:-1] or tokens


MUTANT = planted(
    "sample-and-match",
    "drafts-before-the-last-token",
    "drafts something else than it proposes",
    drafting_from(see, "sample-and-match"),
    category="Q",
    citation="plausible",
    killed_by="draft_is_honest",
    examples=SHORT,
)
