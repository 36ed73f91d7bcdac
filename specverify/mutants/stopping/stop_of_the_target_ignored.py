"""Accepted drafts are searched for the end of sequence; the token that the target adds is not looked at."""

from __future__ import annotations

from collections.abc import Callable

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.stopping import cut
from specverify.reference import Tokens


def among_drafts(ends: Callable[[int], bool], new: Tokens, accepted: int, most: int) -> tuple[int, bool]:
    """Return the block up to a draft that ends the text."""
    return cut(lambda count: count <= accepted and ends(count), new, accepted, most)


MUTANT = in_situation(
    "end of sequence",
    "stop-of-the-target-ignored",
    "only drafts are searched for the end",
    category="K",
    citation="romsto/Speculative-Decoding commits 97b82fb, 9b64b44",
    killed_by="stop_law",
    cut=among_drafts,
)
