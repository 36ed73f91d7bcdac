"""Candidates are appended before they are judged, and a stop does not take the accepted ones behind it back."""

from __future__ import annotations

from collections.abc import Callable

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.stopping import cut
from specverify.reference import Tokens


def with_candidates(ends: Callable[[int], bool], new: Tokens, accepted: int, most: int) -> tuple[int, bool]:
    """Return the block up to its end, or to the last accepted draft if that is later."""
    count, finished = cut(ends, new, accepted, most)
    return max(count, min(accepted, most)), finished


MUTANT = in_situation(
    "stop strings",
    "accepted-drafts-after-stop",
    "accepted drafts follow a stop",
    category="K",
    citation="openvino.genai commit 54f3029b1; PR #1951",
    killed_by="stop_law",
    cut=with_candidates,
)
