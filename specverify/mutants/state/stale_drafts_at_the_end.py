"""Near the end of the context the drafter cannot run, and drafts of the round before are fed once more, uncounted."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.reference import Tokens


def last_rounds(pending: Tokens) -> Tokens:
    """Return the first draft of the last round."""
    return pending[:1]


MUTANT = in_situation(
    "recurrent to the end of the context",
    "stale-drafts-at-the-end",
    "old drafts are verified at the end",
    category="I",
    citation="vLLM PR #38711",
    fed_when_full=last_rounds,
)
