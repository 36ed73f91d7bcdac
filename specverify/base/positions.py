"""The token of a text that stands for a wrong position of a forward pass."""

from __future__ import annotations

from collections.abc import Sequence


class WrongPosition(int):
    """The token 0 of a text, where a position is missing between two tokens, or two tokens have the same position.

    It is shown as ``_``.
    """

    def __repr__(self) -> str:
        """Return ``_``, so that a text shows that no program has chosen this token."""
        return "_"


WRONG_POSITION = WrongPosition(0)


def has_wrong_position(text: Sequence[int]) -> bool:
    """Return whether a position is wrong in ``text``, the token ids of a text."""
    return any(isinstance(token, WrongPosition) for token in text)
