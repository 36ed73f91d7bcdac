"""What a verifier of batches may answer with: one row of emitted tokens for each row that it was given.

That is an array ``[B, gamma + 1]``, or a sequence of rows: lists, arrays or tensors, of different lengths too. An array
of tokens beside counts is refused. It is not said whether they count the accepted drafts or all that is emitted, and
whatever stands behind them would be read by a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specverify.subjects.emitted import type_and_shape
from specverify.subjects.subject import UnusableSubject


def check_rows(answer: Any, count: int) -> None:
    """Raise ``UnusableSubject`` in one sentence unless ``answer`` is as many rows as were given, as far as is seen."""
    expected = f"expected [{count}, gamma + 1] or a list of rows"
    if not _is_sequence(answer) or getattr(answer, "ndim", 2) != 2:
        raise UnusableSubject(f"it returned {type_and_shape(answer)}, {expected}")
    if _is_tokens_and_more(answer, count):
        parts = ", ".join(map(type_and_shape, answer))
        raise UnusableSubject(
            f"it returned a {type(answer).__name__} of {len(answer)} ({parts}), {expected}: the emitted tokens alone, "
            "such as [row[:n + 1] for row, n in zip(tokens, accepted)] of n accepted drafts a row"
        )
    if len(answer) != count:
        raise UnusableSubject(f"it returned {len(answer)} rows for a batch of {count}, expected one for each")


def _is_sequence(answer: Any) -> bool:
    """Return whether it has a length and places; a mapping has keys, and text is no tokens."""
    has_places = hasattr(answer, "__len__") and hasattr(answer, "__getitem__")
    return has_places and not isinstance(answer, (Mapping, str, bytes))


def _is_tokens_and_more(answer: Any, count: int) -> bool:
    """Return whether a batch of tokens is the first of several things."""
    if not isinstance(answer, (tuple, list)) or len(answer) < 2:
        return False
    first = answer[0]
    if isinstance(first, (tuple, list)):
        return len(first) == count and all(isinstance(row, (tuple, list)) for row in first)
    shape = tuple(getattr(first, "shape", ()))
    return len(shape) == 2 and shape[0] == count and shape[1] > 1
