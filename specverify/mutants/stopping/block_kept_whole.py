"""An end of sequence inside a block is noticed and ends the text, but what was accepted behind it comes out too."""

from __future__ import annotations

from collections.abc import Callable

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.stopping import cut
from specverify.reference import Tokens


def uncut(ends: Callable[[int], bool], new: Tokens, accepted: int, most: int) -> tuple[int, bool]:
    """Return the whole block."""
    return min(len(new), most), cut(ends, new, accepted, most)[1]


MUTANT = in_situation(
    "two ends of sequence",
    "block-kept-whole",
    "a block goes on behind its end",
    category="K",
    citation="transformers issue #47912, PR #47931; koboldcpp issue #1276",
    killed_by="stop_law",
    cut=uncut,
)
