"""Name a random number that a program uses twice, as the cause of a wrong law."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from itertools import islice, takewhile
from typing import Any

from specverify.intercept.audit import Reuse, audited
from specverify.intercept.refusals import NeedsValue
from specverify.laws.paths import paths
from specverify.reference import Draws

USED_TWICE = "random numbers are used twice: "
STATE = "the state "
MOST_PATHS = 300
"""The most paths on which a number that is used twice is searched for."""


def number_used_twice(run: Callable[[Draws], Any], noise: bool = True) -> str:
    """Return the sentence about a random number that the program ``run`` uses twice; "" if none is found.

    What counts as two uses is defined in ``intercept.audit``. Without ``noise``, the noise of races does not count.
    """
    with audited() as found, suppress(NeedsValue):
        for _ in takewhile(lambda _: not found, islice(paths(run), MOST_PATHS)):
            pass
    counted = [reuse for reuse in found if noise or not reuse.noise]
    return reuse_in_words(counted[0]) if counted else ""


def reuse_in_words(reuse: Reuse) -> str:
    """Return a sentence about ``reuse``: a JAX key, a generator state or a uniform that is used twice."""
    if not reuse.what.startswith(STATE):
        return reuse.sentence
    drawn = re.sub(r" seed\([^)]*\)", "", reuse.what.removeprefix(STATE).removesuffix(" draws from"))
    if drawn.startswith("jax."):
        again = "at the same line" if reuse.second == reuse.first else f"at {reuse.second}"
        return f"one key is used by {drawn} and again {again}, and gives the same numbers"
    same = "each time" if reuse.second == reuse.first else f"as {reuse.second}"
    return f"the generator is seeded with the same seed again: {drawn} draws the same numbers {same}"
