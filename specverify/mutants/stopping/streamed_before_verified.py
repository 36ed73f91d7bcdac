"""Drafts are sent as soon as they are there; the ones that are rejected cannot be called back."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.stopping import Pieces, text_of
from specverify.reference import Tokens


def drafts_first(sent: str, new: Tokens, fresh: Tokens, drafts: Tokens, pieces: Pieces, last: bool) -> str:
    """Return the text of every draft and of the token behind them."""
    return text_of(drafts + fresh[-1:], pieces)


MUTANT = in_situation(
    "streamed",
    "streamed-before-verified",
    "drafts are sent before they are judged",
    category="K",
    citation="plausible: a callback that cannot take back what it sent",
    streamed=drafts_first,
)
