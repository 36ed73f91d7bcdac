"""Generators that nobody holds any more are let go: a process that judges much stays as fast."""

from __future__ import annotations

import random
from weakref import ref

import numpy as np
import pytest

from specverify.intercept.cpython.sandbox import look_around


class Weakly(np.random.Generator):
    """A generator that can be referred to weakly."""


class WeaklyOfRandom(random.Random):
    """Likewise."""


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("made", [lambda: Weakly(np.random.PCG64(1)), lambda: WeaklyOfRandom(1)])
@pytest.mark.parametrize("held", [lambda made: made, lambda made: made.random])
def test_generators_that_nobody_holds_are_let_go(made, held):
    one = made()
    kept, alive = [held(one)], ref(one)
    del one
    look_around()
    assert alive() is not None
    del kept
    look_around()
    assert alive() is None
