"""Accepted drafts alone are searched for the end: one that the target draws itself is passed over."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted
from specverify.mutants.stopping.own_stop import stopping_at
from specverify.reference import Round, Tokens


def in_accepted(eos: Tokens, done: Round) -> int | None:
    """Look for the end in ``accepted``."""
    return next((place for place, token in enumerate(done.tokens[: done.accepted]) if token in eos), None)


MUTANT = planted(
    "speculative-sampling",
    "eos-of-the-target-ignored",
    "looks for EOS among accepted drafts alone",
    stopping_at(in_accepted),
    category="K",
    citation="romsto/Speculative-Decoding commits 97b82fb, 9b64b44",
    killed_by="eos_is_final",
    examples=SHORT,
)
