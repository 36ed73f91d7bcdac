"""With several end-of-sequence ids, the places where they occur are sorted by id, and the first of these is taken."""

from __future__ import annotations

from collections.abc import Callable

from specverify.mutants.serving.planted import in_situation
from specverify.reference import Tokens


def by_id(ends: Callable[[int], bool], new: Tokens, accepted: int, most: int) -> tuple[int, bool]:
    """Return the block up to the end with the lowest id."""
    count = min(len(new), most)
    found = sorted((new[place - 1], place) for place in range(1, count + 1) if ends(place))
    return (found[0][1], True) if found else (count, count >= most)


MUTANT = in_situation(
    "two ends of sequence",
    "several-ends-by-id",
    "the end found first has the lowest id",
    category="K",
    citation="romsto/Speculative-Decoding ngram_assisted.py and speculative_decoding.py at db7db67",
    killed_by="stop_law",
    cut=by_id,
)
