"""Common prefixes of token sequences."""

from __future__ import annotations

from collections.abc import Sequence


def common_length(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the length of the common prefix of ``one`` and ``other``."""
    shorter = min(len(one), len(other))
    return next((place for place in range(shorter) if one[place] != other[place]), shorter)
