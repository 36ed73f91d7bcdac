"""Drafts enter the state that penalties are computed from, and those that are rejected never leave it."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.reference import Tokens


def all_drafts(history: Tokens, reserved: int, new: Tokens, drafts: Tokens) -> Tokens:
    """Return the history with every draft and the last token of the round."""
    return history[: len(history) - reserved] + drafts + new[-1:]


MUTANT = in_situation(
    "penalties",
    "rejected-drafts-in-history",
    "rejected drafts stay in the history",
    category="F",
    citation="MLC-LLM PR #2810 (2d63553f); mlx-lm commit 79441dc2 (branch), third error",
    killed_by="processors_see_their_prefix",
    resolved=all_drafts,
)
