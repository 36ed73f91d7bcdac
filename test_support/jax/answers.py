"""The law of a program whose random calls are answered."""

from __future__ import annotations

from functools import partial

import numpy as np

from specverify.intercept.cpython import patches
from specverify.intercept.everywhere import answered_everywhere
from specverify.laws.enumeration import program_law


def law_of(function):
    """Return outcome -> probability of a function; arrays become tuples."""

    def program(draws):
        with answered_everywhere(draws):
            found = function()
            each = found if isinstance(found, tuple) else (found,)
            values = [value for item in each for value in np.asarray(item).ravel().tolist()]
        return tuple(values) if len(values) > 1 else values[0]

    return dict(patches.again(partial(program_law, program)).probabilities)
