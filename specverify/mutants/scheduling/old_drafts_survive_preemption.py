"""A request comes back from preemption with the drafts it had, and they are fed as if they had been committed."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.reference import Tokens


def with_drafts(tokens: Tokens, pending: Tokens) -> Tokens:
    """Return the text and the drafts of the last round."""
    return tokens + pending


MUTANT = in_situation(
    "preempted under a grammar",
    "old-drafts-survive-preemption",
    "a preempted request keeps its drafts",
    category="M",
    citation="vLLM PRs #30916, #31944, #31955 (issue #31876)",
    resumed=with_drafts,
)
