"""Nothing remains of what was answered, and of what is nobody's any more: a process that judges much stays as fast."""

from __future__ import annotations

import random

import numpy as np
import pytest
from objects_there import there

from specverify.intercept.moved import look_around


def bound_method():
    return np.random.default_rng(1).random


def generator():
    return np.random.default_rng(1)


def generator_of_random():
    return random.Random(1)


@pytest.mark.parametrize("made", [bound_method, generator, generator_of_random])
def test_generators_that_nobody_holds_are_let_go(made):
    kinds = (np.random.PCG64, random.Random)
    look_around()
    before = there(*kinds)
    kept = [made() for _ in range(5)]
    look_around()
    assert there(*kinds) == before + 5
    del kept
    look_around()
    assert there(*kinds) == before
