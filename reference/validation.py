"""Validation of arguments: each function raises ``ValueError`` in one sentence with the given and expected value."""

from __future__ import annotations

import operator
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

from .types import Tokens


def argument_error(name: str, value: Any, expected: str) -> ValueError:
    """Return a ``ValueError`` with the message ``NAME is VALUE, expected EXPECTED``, filled with the arguments."""
    return ValueError(f"{name} is {shown(value)}, expected {expected}")


def shown(value: Any) -> str:
    """Return the ``repr`` of ``value`` for a message, on one line and shortened to 80 characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def is_integer(value: Any) -> bool:
    """Return whether ``value`` is an integer, of Python or NumPy, and no ``bool``."""
    return type(value) is int or (not isinstance(value, bool) and isinstance(value, Integral))


def is_number(value: Any) -> bool:
    """Return whether ``value`` is a real number, neither NaN nor a ``bool``."""
    return not isinstance(value, bool) and isinstance(value, Real) and bool(value == value)  # noqa: PLR0124 - NaN


def check_integers(**values: Any) -> None:
    """Raise ``ValueError`` for the first of ``values`` that is no integer."""
    for name, value in values.items():
        if not is_integer(value):
            raise argument_error(name, value, "an integer")


def check_number(value: Any, name: str, expected: str, holds: Callable[[Any], bool]) -> None:
    """Raise ``ValueError`` unless ``value`` is a real number (no NaN, no ``bool``) for which ``holds`` is true.

    ``name`` and ``expected`` are used in the message.
    """
    if not is_number(value) or not holds(value):
        raise argument_error(name, value, expected)


def check_integer(value: Any, name: str, least: int = 1, most: float = float("inf")) -> None:
    """Raise ``ValueError`` unless ``value`` is an integer of at least ``least`` and at most ``most``.

    ``name`` is the name of the argument in the message.
    """
    if not is_integer(value) or not least <= value <= most:
        raise argument_error(name, value, f"an integer {range_of(least, most)}")


def range_of(least: int, most: float) -> str:
    """Return the bounds of an integer in words, for a message.

    The words are ``of at least LEAST`` if ``most`` is infinite, else ``from LEAST to MOST``.
    """
    return f"of at least {least}" if most == float("inf") else f"from {least} to {most:g}"


def check_callable(value: Any, name: str, expected: str = "a callable from tokens to a pmf") -> None:
    """Raise ``ValueError`` unless ``value`` can be called; ``name`` and ``expected`` are used in the message."""
    if not callable(value):
        raise argument_error(name, value, expected)


def check_instance(value: Any, name: str, kind: type) -> None:
    """Raise ``ValueError`` unless ``value`` is of the class ``kind``; ``name`` is its name in the message."""
    if not isinstance(value, kind):
        raise argument_error(name, value, f"an instance of {kind.__name__}")


def checked_token(token: Any, size: int) -> int:
    """Return ``token`` as an ``int``. Raises ``ValueError`` unless it is an integer in 0..size - 1, and no ``bool``."""
    if not is_integer(token) or not 0 <= token < size:
        raise ValueError(f"token {shown(token)} is outside the vocabulary 0..{size - 1}, expected an integer of it")
    return operator.index(token)


def checked_tokens(tokens: Any, name: str) -> Tokens:
    """Return ``tokens`` as a tuple of ``int``. Raises ``ValueError`` unless it is a sequence of integers >= 0.

    ``name`` is their name in the message.
    """
    result = as_tuple(tokens, name, "a sequence of token ids")
    for token in result:
        if not is_integer(token) or token < 0:
            raise argument_error(f"a token of {name}", token, "an integer of at least 0")
    return tuple(map(operator.index, result))


def as_tuple(values: Any, name: str, expected: str) -> tuple[Any, ...]:
    """Return ``values`` as a tuple. Raises ``ValueError`` if it is no iterable.

    ``name`` and ``expected`` are used in the message.
    """
    try:
        return tuple(values)
    except TypeError:
        raise argument_error(name, values, expected) from None
