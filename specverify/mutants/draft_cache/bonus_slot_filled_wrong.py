"""After a fully accepted round the drafter lacks two tokens, and the last one is written into both places."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_drafting
from specverify.reference import Tokens


def twice_the_last(tokens: Tokens, seen: int, rounds: int) -> Tokens:
    """Return the last token as often as tokens are missing, once the prompt was fed."""
    return tokens[-1:] * (len(tokens) - seen) if rounds else tokens[seen:]


MUTANT = in_drafting(
    "bonus-slot-filled-wrong",
    "the extra token's slot holds another",
    citation="vLLM PR #9730 (after #5765, #4212)",
    draft_feed=twice_the_last,
)
