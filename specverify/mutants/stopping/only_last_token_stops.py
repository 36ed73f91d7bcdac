"""The stopping criterion looks at the last committed token: an end of sequence inside a block is passed over."""

from __future__ import annotations

from collections.abc import Callable

from specverify.mutants.serving.planted import in_situation
from specverify.reference import Tokens


def by_last(ends: Callable[[int], bool], new: Tokens, accepted: int, most: int) -> tuple[int, bool]:
    """Return the whole block, finished if its last token ends the text."""
    count = min(len(new), most)
    return count, ends(count) or count >= most


MUTANT = in_situation(
    "end of sequence",
    "only-last-token-stops",
    "only a block's last token can end it",
    category="K",
    citation="transformers PR #31301",
    killed_by="stop_law",
    cut=by_last,
)
