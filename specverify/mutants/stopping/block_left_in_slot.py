"""The accepted block is put into the slot first and never trimmed: the next turn begins behind tokens nobody saw."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation


def whole_block(held: int, block: int) -> int:
    """Return the entries of the accepted block before its cut."""
    return block


MUTANT = in_situation(
    "conversation",
    "block-left-in-slot",
    "the slot keeps tokens behind the end",
    category="K",
    citation="llama.cpp issue #28049",
    at_end=whole_block,
)
