"""Generators that nobody holds any more are let go: a process that judges much stays as fast."""

from __future__ import annotations

import gc
import random
from weakref import ref

import numpy as np
import pytest

from specverify.intercept.audit import audited
from specverify.intercept.cpython.sandbox import look_around
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.streams import Answers
from specverify.laws.draws import Tape

RNG = np.random.default_rng()


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


def compared():
    u = RNG.random()
    return bool(u < 0.5), bool(u < 0.25)


@pytest.mark.parametrize(
    "program",
    [compared, lambda: int(RNG.choice(3, p=[0.5, 0.25, 0.25])), lambda: random.random() < 0.5],
    ids=["compared", "drawn", "of random"],
)
def test_a_run_is_let_go_without_the_garbage_collector(program):
    """Its pmfs can be large, and a collector runs seldom in a large process."""
    gc.collect()
    gc.disable()
    try:
        with audited(), answered_everywhere(Tape(0)):
            program()
        assert not any(type(item) is Answers for item in gc.get_objects())
    finally:
        gc.enable()
