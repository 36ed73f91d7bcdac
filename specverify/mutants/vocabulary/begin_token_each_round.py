"""The text is tokenised anew for the drafter in every round, and each time a begin token is put in front."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_drafting
from specverify.reference import Tokens


def with_begin(tokens: Tokens, seen: int, rounds: int) -> Tokens:
    """Return the tokens to be fed behind a begin token from the second round on."""
    return ((0,) if rounds else ()) + tokens[seen:]


MUTANT = in_drafting(
    "begin-token-each-round",
    "each round puts a begin token in front",
    category="N",
    citation="transformers PR #46124",
    draft_feed=with_begin,
)
