"""Of several end-of-sequence ids the one that is looked for first is found first, wherever it stands in the block."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted
from specverify.mutants.stopping.own_stop import stopping_at
from specverify.reference import Round, Tokens


def first_id(eos: Tokens, done: Round) -> int | None:
    """Return where the first id that occurs stands, not the first place where one occurs."""
    return next((done.tokens.index(token) for token in eos if token in done.tokens), None)


MUTANT = planted(
    "speculative-sampling",
    "eos-by-id-order",
    "cuts at the first EOS id, not the first EOS",
    stopping_at(first_id),
    category="K",
    citation="romsto/Speculative-Decoding speculative_decoding.py:150-152 at db7db67",
    killed_by="eos_is_final",
    examples=SHORT,
)
