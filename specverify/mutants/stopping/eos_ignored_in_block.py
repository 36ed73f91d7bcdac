"""An end-of-sequence token is noticed only as the last token of a block: accepted drafts go on behind it."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted
from specverify.mutants.stopping.own_stop import stopping_at
from specverify.reference import Round, Tokens


def in_last(eos: Tokens, done: Round) -> int | None:
    """Test the last committed token alone."""
    return len(done.tokens) - 1 if done.tokens[-1] in eos else None


MUTANT = planted(
    "speculative-sampling",
    "eos-ignored-in-block",
    "stops only if a block ends in EOS",
    stopping_at(in_last),
    category="K",
    citation="transformers PR #31301, issue #47912; koboldcpp issue #1276",
    killed_by="eos_is_final",
    examples=SHORT,
)
