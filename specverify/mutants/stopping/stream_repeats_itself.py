"""The incremental detokeniser steps back by one token to complete a character, and sends what it finds there again."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.stopping import Pieces, text_of
from specverify.reference import Tokens


def from_two_back(sent: str, new: Tokens, fresh: Tokens, drafts: Tokens, pieces: Pieces, last: bool) -> str:
    """Return the new text, with the text of the token before it if that ended inside a character."""
    text, earlier = text_of(new, pieces), text_of(new[: len(new) - len(fresh)], pieces)
    begin = max(len(sent) - 1, 0) if earlier.endswith("\ufffd") else len(sent)
    return (text if last else text.rstrip("\ufffd"))[begin:]


MUTANT = in_situation(
    "streamed",
    "stream-repeats-itself",
    "the stream repeats split characters",
    category="K",
    citation="rtp-llm PR #1285 (10d1aba88)",
    streamed=from_two_back,
)
