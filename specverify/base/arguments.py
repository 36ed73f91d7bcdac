"""Validation of arguments at the start of a call.

Every error message is one sentence with the name of the argument, the value given and the value expected. The parameter
``name`` of each function is the name of the argument.
"""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from specverify.reference.validation import (
    argument_error,
    check_integer,
    check_number,
    is_integer,
    is_number,
    range_of,
    shown,
)

__all__ = [
    "argument_error",
    "check_callable",
    "check_choice",
    "check_count",
    "check_flag",
    "check_integer",
    "check_law",
    "check_number",
    "check_positive",
    "check_probability",
    "check_seconds",
    "check_seed",
    "is_number",
    "is_token",
    "nearest",
    "shown",
]

LONGEST = 1e7
"""Largest time limit in seconds, about 116 days."""
MOST_SEEDS = 2**63


def check_positive(value: Any, name: str, what: str) -> None:
    """Raise ``ValueError`` unless ``value`` is a positive, finite number.

    ``name`` names the argument in the message, ``what`` the unit, such as "seconds".
    """
    check_number(value, name, f"a positive number of {what}", lambda number: 0 < number < math.inf)


def check_rounding(value: Any, name: str) -> None:
    """Raise ``ValueError`` unless ``value``, called ``name`` in the message, is a relative error >= 0 and below 1."""
    check_number(value, name, "a relative error of at least 0 and below 1", lambda number: 0 <= number < 1)


def check_probability(value: Any, name: str) -> None:
    """Raise ``ValueError`` unless ``0 < value < 1``; the message calls the value ``name``."""
    check_number(value, name, "a probability strictly between 0 and 1", lambda number: 0 < number < 1)


def check_count(value: Any, name: str, least: int = 1, most: float = math.inf) -> None:
    """Raise ``ValueError`` unless ``value`` is an integer between ``least`` and ``most``, both included.

    ``name`` names the argument in the message.
    """
    if type(value) is int and least <= value <= most:
        return  # counts are looked at by the thousand
    check_number(value, name, f"a whole number {range_of(least, most)}", lambda number: _is_whole(number, least, most))


def check_seed(value: Any, name: str = "the seed") -> None:
    """Raise ``ValueError`` unless ``value`` is a seed for every library: an integer of at least 0 and below 2**63.

    The message calls the value ``name``.
    """
    if not is_integer(value) or not 0 <= value < MOST_SEEDS:
        raise argument_error(name, value, "a whole number of at least 0 and below 2**63")


def check_seconds(value: Any, name: str = "the time limit", least: float = 1e-3) -> None:
    """Raise ``ValueError`` unless ``value`` is a time limit: at least ``least`` and at most ``LONGEST`` seconds.

    The message calls the value ``name``.
    """
    expected = f"a number of seconds from {least:g} to {LONGEST:g}"
    check_number(value, name, expected, lambda seconds: least <= seconds <= LONGEST)


def check_choice(value: Any, name: str, choices: Collection[Any]) -> None:
    """Raise ``ValueError`` unless ``value`` is one of ``choices``.

    The message calls the value ``name`` and suggests the most similar choice.
    """
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise argument_error(name, value, f"one of {', '.join(map(repr, choices))}{nearest(value, choices)}")


def nearest(value: Any, choices: Iterable[Any]) -> str:
    """Return the text ``, did you mean ...?`` with the one of ``choices`` that is most similar to ``value``.

    Returns "" if none is similar.
    """
    words = [choice for choice in choices if isinstance(choice, str)]
    result = difflib.get_close_matches(value, words, n=1, cutoff=0.5) if isinstance(value, str) else []
    return f", did you mean {result[0]}?" if result else ""


def check_flag(value: Any, name: str) -> None:
    """Raise ``ValueError`` unless ``value`` is True or False; the message calls the value ``name``."""
    if not isinstance(value, bool):
        raise argument_error(name, value, "True or False")


def check_callable(value: Any, name: str, arguments: int | None = None) -> None:
    """Raise ``ValueError`` unless ``value`` is callable with ``arguments`` positional arguments (a number).

    The message calls the value ``name``. With ``arguments`` None, and for a signature that cannot be read, the number
    is not checked.
    """
    number = f" with {arguments} argument{'s' * (arguments != 1)}" if arguments else " without arguments"
    wanted = "" if arguments is None else number
    if not callable(value):
        raise argument_error(name, value, f"something to call{wanted}")
    if any(map(_is_asynchronous, (value, getattr(value, "__call__", None)))):  # noqa: B004 - the method is looked at
        raise argument_error(name, value, "a function that returns its answer when it is called, and is not async")
    if arguments is None:
        return
    check_takes(value, name, arguments, f"something to call{wanted}")


def check_takes(value: Any, name: str, arguments: int, expected: str) -> None:
    """Raise ``ValueError`` unless ``value`` can be called with ``arguments`` positional arguments (a number).

    Nothing is checked if the signature cannot be read. In the message, ``name`` is the name of the callable, and
    ``expected`` describes what it should be.
    """
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*[None] * arguments)
    except TypeError as error:
        raise ValueError(f"{name} takes {signature}, expected {expected}: {error}") from None


def takes(value: Any, arguments: int) -> bool:
    """Return whether ``value`` can be called with this number of positional arguments; True if it is not known."""
    try:
        check_takes(value, "", arguments, "")
    except ValueError:
        return False
    return True


def _is_asynchronous(value: Any) -> bool:
    return inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(value)


def check_law(law: Any, name: str) -> None:
    """Raise ``ValueError`` unless ``law`` maps tuples of token ids to probabilities that sum to 1 within 1e-6.

    The message calls the law ``name``.
    """
    if not isinstance(law, Mapping):
        raise argument_error(name, law, "a mapping from tuples of token ids to probabilities")
    for tokens, mass in law.items():
        if not (isinstance(tokens, tuple) and tokens and all(map(is_token, tokens))):
            raise ValueError(f"{name} has the key {shown(tokens)}, expected a non-empty tuple of token ids, each >= 0")
        check_number(mass, f"{name} at {tokens}", "a probability from 0 to 1", lambda value: 0 <= value <= 1 + 1e-6)
    total = math.fsum(law.values())
    if not abs(total - 1) <= 1e-6:
        raise ValueError(f"{name} sums to {total:.6g}, expected probabilities that sum to 1")


def is_token(value: Any) -> bool:
    """Return whether ``value`` is a token id: an integer of at least 0 that is not a ``bool``."""
    return is_integer(value) and value >= 0


def _is_whole(number: Any, least: int, most: float) -> bool:
    return math.isfinite(number) and least <= number <= most and bool(number == int(number))
