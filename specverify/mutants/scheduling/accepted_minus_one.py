"""Accepted drafts are counted as new tokens less one, also where the request was aborted and there are none."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.reference import Tokens


def all_but_one(new: Tokens, accepted: int) -> int:
    """Return one fewer than there are new tokens."""
    return len(new) - 1


MUTANT = in_situation(
    "aborted",
    "accepted-minus-one",
    "an aborted request accepted -1 drafts",
    category="M",
    citation="vLLM PR #28473",
    accepted_count=all_but_one,
)
