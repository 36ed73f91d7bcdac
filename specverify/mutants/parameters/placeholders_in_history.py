"""The history holds a placeholder for every token in flight, and only the last one is replaced when they arrive."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.reference import Tokens


def last_placeholder(history: Tokens, reserved: int, new: Tokens, drafts: Tokens) -> Tokens:
    """Return the history with its last placeholder replaced."""
    return history[:-1] + new[-1:]


MUTANT = in_situation(
    "penalties",
    "placeholders-in-history",
    "placeholders stay in the history",
    category="F",
    citation="vLLM PRs #26467, #30122",
    killed_by="processors_see_their_prefix",
    resolved=last_placeholder,
)
