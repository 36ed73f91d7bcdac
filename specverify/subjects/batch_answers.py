"""The accepted results of a verifier of batches: one row of emitted tokens for each row of the input.

A result is an array ``[B, gamma + 1]``, or a sequence of rows (lists, arrays or tensors, possibly of different
lengths). An array of tokens with an array of counts is an error: the counts may be of accepted drafts or of emitted
tokens, and the padding cannot be distinguished from tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specverify.subjects.emitted import type_and_shape
from specverify.subjects.subject import UnusableSubject


def check_rows(answer: Any, count: int) -> None:
    """Raise ``UnusableSubject`` unless ``answer`` has ``count`` rows, the number of rows in the input."""
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
    """Return whether ``answer`` has a length and integer indices; mappings and strings are excluded."""
    has_places = hasattr(answer, "__len__") and hasattr(answer, "__getitem__")
    return has_places and not isinstance(answer, (Mapping, str, bytes))


def _is_tokens_and_more(answer: Any, count: int) -> bool:
    """Return whether ``answer`` is a tuple of several values that begins with a batch of ``count`` rows of tokens."""
    if not isinstance(answer, (tuple, list)) or len(answer) < 2:
        return False
    first = answer[0]
    if isinstance(first, (tuple, list)):
        return len(first) == count and all(isinstance(row, (tuple, list)) for row in first)
    shape = tuple(getattr(first, "shape", ()))
    return len(shape) == 2 and shape[0] == count and shape[1] > 1
