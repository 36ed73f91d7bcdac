"""The fault that a script must show: too frequent outcomes, a returned value, a held or changed object, an error."""

from __future__ import annotations

import math
from typing import NamedTuple

from specverify.reference import Tokens

FEWEST_CALLS, MOST_CALLS = 200, 20_000
STANDARD_ERRORS = 6.0


class NoScript(ValueError):  # noqa: N818 - reads as the sentence it is
    """The failure cannot be shown by a script; the message is the reason."""


class Drafted(NamedTuple):
    """A drafted token that is emitted too often or too seldom, and the rounds that lead to it."""

    rounds: tuple[int, ...]
    """At how many new tokens the rounds began, up to the one in which it is reached."""
    before: Tokens
    """The new tokens before it."""
    token: int
    p: float


class Fault(NamedTuple):
    """One failure of an engine's call, as values that a script can reproduce."""

    said: str
    """In a sentence."""
    wrong: tuple[Tokens, ...] = ()
    """New tokens that come out with probability ``got`` together, and should with ``expected``."""
    expected: float = 0.0
    got: float = 0.0
    calls: int = 1
    """How many calls show it."""
    uniform: float | None = None
    """The value that every uniform is given: 0, or 1 for the largest float below."""
    returned: str = ""
    """Else the name of what is returned beside the tokens and is not what a plain call returns."""
    error: str = ""
    """Else the name of the exception that the call with speculation raises, in some of ``calls``."""
    changed: tuple[str, ...] = ()
    """Else what of the caller's the call changes, as ``Observed.changed`` names it."""
    cache: str = ""
    """Else what is wrong about the cache of a forward pass: ``fed`` other tokens than it lacks, ``held``, or ``shown``,
    where logits processors are shown other tokens than it has read."""
    drafted: Drafted | None = None
    """Else a draft that should be emitted with probability ``expected``, where one is reached, and is with ``got``."""
    frames: tuple[tuple[str, int, str], ...] = ()
    """File, number and text of the lines that were under way when it was raised, the innermost last."""


def calls_to_see(expected: float, got: float) -> int:
    """Return the number of calls that separates two probabilities by ``STANDARD_ERRORS``; 1 if both are certain.

    For an impossible outcome, one occurrence is enough: the number of calls that miss it with probability e^-20.
    """
    variance = max(expected * (1 - expected), got * (1 - got))
    if variance < 1e-6 < abs(got - expected):
        return 1
    if expected == 0 < got:
        return max(FEWEST_CALLS, math.ceil(20 / got))
    return max(FEWEST_CALLS, math.ceil(STANDARD_ERRORS**2 * variance / max(got - expected, 1e-9) ** 2))
