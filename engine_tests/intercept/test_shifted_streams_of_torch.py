"""Generators of torch that began from one seed and draw the same numbers, one of them later than the other."""

from __future__ import annotations

import pytest
import torch

from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import NeedsValue
from specverify.laws.enumeration import program_law


def law_of(pair):
    """Return the law of two comparisons, each of a number of one of the generators that ``pair()`` returns."""

    def program(draws):
        with answered_everywhere(draws):
            return tuple(bool(torch.rand((), generator=generator) < 0.5) for generator in pair())

    return program_law(program).probabilities


def generator(seed, drawn=0):
    made = torch.Generator().manual_seed(seed)
    torch.rand(drawn, generator=made)
    return made


def test_a_generator_ahead_of_another_of_its_seed_is_refused():
    kept = generator(3), generator(3, drawn=2)
    with pytest.raises(NeedsValue, match="two generators that began from one seed draw the same numbers"):
        law_of(lambda: kept)


def test_equal_states_are_followed_exactly_and_other_seeds_are_independent():
    equal, other = (generator(3), generator(3)), (generator(3), generator(4))
    assert law_of(lambda: equal) == {(True, True): 0.5, (False, False): 0.5}
    assert law_of(lambda: other)[True, False] == 0.25


def test_generators_that_the_first_run_makes_keep_their_seeds():
    made = []

    def pair():
        while len(made) < 2:
            made.append(generator(3 + len(made)))
        return made

    assert law_of(pair)[True, False] == 0.25
    assert [one.initial_seed() for one in made] == [3, 4]
