"""Generators that began from one seed and draw the same numbers, one of them later than the other."""

from __future__ import annotations

import random

import numpy as np
import pytest

from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import NeedsValue
from specverify.laws.enumeration import program_law


def law_of(*generators):
    """Return the law of two comparisons, each of a number of one of ``generators``."""

    def program(draws):
        with answered_everywhere(draws):
            return tuple(bool(generator.random() < 0.5) for generator in generators)

    return program_law(program).probabilities


def moved(generator, numbers):
    for _ in range(numbers):
        generator.random()
    return generator


def seeded(make, apart):
    """Return two generators of one seed, the second ``apart`` numbers ahead."""
    return make(3), moved(make(3), apart)


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState, random.Random])
def test_a_generator_ahead_of_another_of_its_seed_is_refused(make):
    with pytest.raises(NeedsValue, match=r"two generators that began from one seed draw the same numbers.*; give each"):
        law_of(*seeded(make, 2))


@pytest.mark.parametrize("make", [np.random.default_rng, random.Random])
def test_equal_states_are_followed_exactly(make):
    assert law_of(*seeded(make, 0)) == {(True, True): 0.5, (False, False): 0.5}


def test_other_seeds_and_streams_moved_far_apart_are_independent():
    bits = np.random.PCG64(3)
    jumped = [np.random.Generator(bits.jumped(place)) for place in (0, 1)]
    spawned = np.random.default_rng(3).spawn(2)
    for pair in (jumped, spawned, (random.Random(3), random.Random(4)), seeded(np.random.default_rng, 10_000)):
        assert law_of(*pair)[True, False] == 0.25


def test_a_copy_draws_the_number_that_its_original_drew():
    one = moved(np.random.default_rng(3), 2)

    def program(draws):
        with answered_everywhere(draws):
            other = np.random.default_rng(3)
            other.bit_generator.state = one.bit_generator.state
            return bool(one.random() < 0.5), bool(other.random() < 0.5)

    assert program_law(program).probabilities == {(True, True): 0.5, (False, False): 0.5}
