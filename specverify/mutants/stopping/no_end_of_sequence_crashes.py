"""The test for the end of sequence takes for granted that there is an id for it."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.reference import Tokens


def first_of(token: int, eos: Tokens) -> bool:
    """Return whether a token ends the text; raises ``IndexError`` if none does."""
    return token == eos[0] or token in eos


MUTANT = in_situation(
    "one request",
    "no-end-of-sequence-crashes",
    "without an end-of-sequence id it crashes",
    category="K",
    citation="transformers PR #46790",
    ends_text=first_of,
)
