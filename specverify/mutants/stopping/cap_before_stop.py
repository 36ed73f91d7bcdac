"""If a stop and the cap on new tokens fall into one block, the cap is looked at first and the stop never."""

from __future__ import annotations

from collections.abc import Callable

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.stopping import cut
from specverify.reference import Tokens


def capped_first(ends: Callable[[int], bool], new: Tokens, accepted: int, most: int) -> tuple[int, bool]:
    """Return the block up to the cap if it reaches it."""
    return (most, True) if len(new) >= most else cut(ends, new, accepted, most)


MUTANT = in_situation(
    "end of sequence",
    "cap-before-stop",
    "the length cap is tested before the end",
    category="K",
    citation="SGLang issue #31599, PRs #31569, #33758",
    killed_by="stop_law",
    cut=capped_first,
)
