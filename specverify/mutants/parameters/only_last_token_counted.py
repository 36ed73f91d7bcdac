"""The penalty state takes in the last token of a round: penalties weaken the more drafts are accepted."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.reference import Tokens


def last_of(history: Tokens, reserved: int, new: Tokens, drafts: Tokens) -> Tokens:
    """Return the history with one token of the round."""
    return history[: len(history) - reserved] + new[-1:]


MUTANT = in_situation(
    "penalties",
    "only-last-token-counted",
    "one token a round enters the history",
    category="F",
    citation="SGLang PR #33643",
    killed_by="processors_see_their_prefix",
    resolved=last_of,
)
