"""The table of the lookup drafter is not emptied between requests, and proposes what another text said."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_drafting
from specverify.reference import Tokens


def both(tokens: Tokens, before: Tokens) -> Tokens:
    """Return this request's text in front of the last one's."""
    return tokens + before


MUTANT = in_drafting(
    "lookup-keeps-last-request",
    "the lookup knows the request before",
    drafting="lookup",
    warm=True,
    citation="llama.cpp issue #27852",
    corpus=both,
)
