"""Generators of NumPy that share their bits, and states of bits that are put back: the same numbers come again."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from test_support.intercept.answered_laws import law_of

RNG = np.random.default_rng(3)


def state_put_back(rng):
    state = rng.bit_generator.state
    first = rng.random() < 0.4
    rng.bit_generator.state = state
    return bool(first), bool(rng.random() < 0.4)


def copied(rng):
    twin = copy.deepcopy(rng)
    return bool(rng.random() < 0.4), bool(twin.random() < 0.4)


def pickled(rng):
    twin = pickle.loads(pickle.dumps(rng))
    return bool(rng.random() < 0.4), bool(twin.random() < 0.4)


def state_of_another(rng):
    twin = np.random.Generator(type(rng.bit_generator)(0))
    twin.bit_generator.state = rng.bit_generator.state
    return bool(twin.random() < 0.4), bool(rng.random() < 0.4)


def bits_shared(rng):
    twin = np.random.Generator(rng.bit_generator)
    return bool(rng.random() < 0.4), bool(twin.random() < 0.4)


GENERATORS = {
    "of the module": lambda: RNG,
    "with a drawn seed": lambda: np.random.default_rng(int(RNG.integers(2**31))),
    "of a twister": lambda: np.random.Generator(np.random.MT19937(int(RNG.integers(2**31)))),
}


@pytest.mark.parametrize("made", GENERATORS.values(), ids=GENERATORS)
@pytest.mark.parametrize("way", [state_put_back, copied, pickled, state_of_another])
def test_the_same_state_gives_the_same_number(way, made):
    assert law_of(lambda: way(made())) == {(True, True): pytest.approx(0.4), (False, False): pytest.approx(0.6)}


@pytest.mark.parametrize("made", GENERATORS.values(), ids=GENERATORS)
def test_generators_that_share_their_bits_draw_one_after_the_other(made):
    law = law_of(lambda: bits_shared(made()))
    assert law == {
        (one, other): pytest.approx((0.6, 0.4)[one] * (0.6, 0.4)[other]) for one in (0, 1) for other in (0, 1)
    }
