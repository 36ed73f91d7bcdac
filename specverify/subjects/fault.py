"""A failure of a subject, stored as values from which a reproducing script is written.

The failure is a wrong frequency of texts, a wrong value, a wrong cache, a changed object or an error.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from specverify.reference import Tokens

FEWEST_CALLS, MOST_CALLS = 200, 20_000
STANDARD_ERRORS = 6.0


class NoScript(ValueError):  # noqa: N818 - reads as the sentence it is
    """Raised if no script can be written that reproduces the failure; the message is the reason."""


class Drafted(NamedTuple):
    """A draft that is emitted too often or too rarely, and the rounds that lead to it.

    ``token`` is the draft, and ``p`` its probability after the text ``before`` under the expected law.
    """

    rounds: tuple[int, ...]
    """The numbers of new tokens at which the rounds began, up to the round of the draft."""
    before: Tokens
    """The new tokens in the text before the draft."""
    token: int
    p: float


class Fault(NamedTuple):
    """One failure of an engine's call, as values that a script can reproduce.

    There are fields for each kind of failure; those of other kinds are empty. A wrong probability is ``got``, and the
    right one is ``expected``.
    """

    said: str
    """The failure as a sentence."""
    wrong: tuple[Tokens, ...] = ()
    """New texts that occur with total probability ``got``; expected is ``expected``."""
    expected: float = 0.0
    got: float = 0.0
    calls: int = 1
    """The number of calls that show the failure."""
    uniform: float | None = None
    """The value of every uniform: 0, or 1 for the largest float below 1; None means that they are drawn."""
    returned: str = ""
    """Name of the value, returned with the tokens, that differs from a plain call's."""
    error: str = ""
    """Name of the exception that the call with speculation raises, in some of ``calls`` calls."""
    changed: tuple[str, ...] = ()
    """Names of the caller's objects that the call changes, as in ``Observed.changed``."""
    cache: str = ""
    """The kind of wrong cache. "fed": the target got other tokens than the cache lacks. "held": the cache has other
    entries. "shown": logits processors got other tokens than the cache has read."""
    drafted: Drafted | None = None
    """A draft that is emitted with probability ``got`` if its position is drafted, expected ``expected``."""
    frames: tuple[tuple[str, int, str], ...] = ()
    """File, number and text of the lines on the stack of the exception, the innermost last."""


def calls_to_see(expected: float, got: float) -> int:
    """Return after how many calls the frequency of an outcome shows whether its probability is ``expected`` or ``got``.

    * If one of the two is 0 and the other is 1: 1 call.
    * If only ``expected`` is 0: the number of calls that all miss the outcome with probability e^-20.
    * Otherwise: the number of calls for which the two are ``STANDARD_ERRORS`` standard errors of the frequency apart.

    A result other than 1 is at least ``FEWEST_CALLS``.
    """
    variance = max(expected * (1 - expected), got * (1 - got))
    if variance < 1e-6 < abs(got - expected):
        return 1
    if expected == 0 < got:
        return max(FEWEST_CALLS, math.ceil(20 / got))
    return max(FEWEST_CALLS, math.ceil(STANDARD_ERRORS**2 * variance / max(got - expected, 1e-9) ** 2))
