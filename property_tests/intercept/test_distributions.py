"""What a boundary draw is given is what the real generators return: from states in which they return it."""

from __future__ import annotations

import math
import random
import re

import numpy as np
import pytest

from reference import Sampled
from specverify.checks.valued_runs import with_values
from specverify.intercept import distributions
from specverify.intercept.distributions import Boundary, MoreNumbers
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import NeedsValue

LOWEST, HIGHEST = 0, 2**32 - 1


def untempered(word):
    """Return the number that the state of a Mersenne twister must hold for ``word`` to come out of it."""
    word ^= word >> 18
    word ^= (word << 15) & 0xEFC60000
    found = word
    for _ in range(7):
        found = word ^ ((found << 7) & 0x9D2C5680)
    word = found
    for _ in range(3):
        found = word ^ (found >> 11)
    return found & HIGHEST


def words(*first):
    """Return 624 numbers: those that give ``first``, the last of them repeated."""
    return [untempered(word) for word in (*first, *(first[-1],) * (624 - len(first)))]


def generator(*first):
    made = np.random.MT19937(0)
    state = made.state
    state["state"].update(key=np.array(words(*first), dtype=np.uint32), pos=0)
    made.state = state
    return np.random.Generator(made)


def legacy(*first):
    made = np.random.RandomState(0)
    made.set_state(("MT19937", np.array(words(*first), dtype=np.uint32), 0))
    return made


def standard(*first):
    made = random.Random(0)
    made.setstate((3, (*words(*first), 0), None))
    return made


def same(one, other):
    """Equal, with the sign of zeros, the dtype and the type."""
    found, wanted = np.asarray(one), np.asarray(other)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    assert found.tolist() == wanted.tolist()
    assert np.signbit(found).tolist() == np.signbit(wanted).tolist()


TAIL = (HIGHEST, HIGHEST & ~0x7F8, HIGHEST)
"""The ziggurat's first layer, beyond its edge: the tail begins, at its far end."""
CALLS = {
    "default_rng().random()": (generator, (LOWEST,), (HIGHEST,), lambda rng: rng.random()),
    "float32": (generator, (LOWEST,), (HIGHEST,), lambda rng: rng.random(2, dtype=np.float32)),
    "uniform": (generator, (LOWEST,), (HIGHEST,), lambda rng: rng.uniform(0.1, 0.3)),
    "exponential": (generator, (LOWEST,), TAIL, lambda rng: rng.exponential()),
    "standard_exponential": (generator, (LOWEST,), TAIL, lambda rng: rng.standard_exponential()),
    "by the inverse": (generator, (LOWEST,), (HIGHEST,), lambda rng: rng.standard_exponential(method="inv")),
    "RandomState.rand": (legacy, (LOWEST,), (HIGHEST,), lambda rng: rng.rand(2)),
    "RandomState.exponential": (legacy, (LOWEST,), (HIGHEST,), lambda rng: rng.exponential(size=2)),
    "random.random": (standard, (LOWEST,), (HIGHEST,), lambda rng: rng.random()),
    "random.expovariate": (standard, (LOWEST,), (HIGHEST,), lambda rng: rng.expovariate(1.0)),
    "random.uniform": (standard, (LOWEST,), (HIGHEST,), lambda rng: rng.uniform(1, 3)),
}
ANSWERED = {
    generator: lambda: np.random.default_rng(0),
    legacy: lambda: np.random.RandomState(0),
    standard: lambda: random.Random(0),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_ends_are_what_the_real_generator_returns_there(name):
    made, lowest, highest, call = CALLS[name]
    for end, state in ((0.0, lowest), (1.0, highest)):
        with answered_everywhere(Sampled(0), end):
            forced = call(ANSWERED[made]())
        same(forced, call(made(*state)))


def test_a_gumbel_number_is_drawn_again_where_it_would_be_infinite():
    """U = 0 gives 1 - U = 1, of which the double logarithm is infinite: the generator goes on to its next number."""
    with answered_everywhere(Sampled(0), 1.0):
        largest = np.random.default_rng(0).gumbel()
    same(largest, generator(LOWEST, LOWEST, 0, 2**6, HIGHEST).gumbel())
    with answered_everywhere(Sampled(0), 0.0):
        same(np.random.default_rng(0).gumbel(size=2), generator(HIGHEST).gumbel(size=2))


def test_one_number_at_its_end_and_the_others_near_it():
    boundary = Boundary(0.0, only=2)
    with answered_everywhere(Sampled(0), boundary):
        assert np.random.default_rng().random(2).tolist() == [2**-6, 2**-6]
        assert random.random() == 0
        assert np.random.default_rng().exponential() == -math.log(1 - 2**-6)
    assert boundary.where.startswith("random.random at test_distributions.py:")
    high = Boundary(1.0, only=0)
    with answered_everywhere(Sampled(0), high):
        assert [random.random(), random.random()] == [1 - 2**-53, 1 - 2**-6]


def test_a_loop_that_waits_for_another_number_ends():
    def smaller_than(bound):
        while (number := random.random()) >= bound:
            pass
        return number

    with answered_everywhere(Sampled(0), Boundary(0.75)):
        assert smaller_than(0.8) == 0.75
        assert 0 < smaller_than(0.5) < 0.5
    most = distributions.EQUAL_CALLS + 1
    again = f"is called again and again: none of {most} numbers ends the loop"
    with pytest.raises(NeedsValue, match=again), answered_everywhere(Sampled(0), Boundary(0.75, most=most)):
        smaller_than(0)


def test_a_program_that_draws_more_numbers_when_they_have_values_is_told_of():
    """What it emits is the same: nothing else would show that it looked."""

    def emitted(draws, boundary=None):
        with answered_everywhere(draws, boundary):
            first = random.random()
            if type(first) is float:
                random.random()
            return bool(first < 0.5)

    with pytest.raises(MoreNumbers, match="2 random numbers are drawn, and 1 were before"):
        emitted(Sampled(0), Boundary(0.5, values=(0.25,)))
    said = with_values(emitted, emitted, 1, 0)
    assert re.search(r"with \(0\.\d+\) for its random numbers it raises MoreNumbers: 2 random numbers", said)


def test_a_program_that_draws_as_many_numbers_whether_or_not_they_have_values_is_not_told_of():
    def emitted(draws, boundary=None):
        with answered_everywhere(draws, boundary):
            return random.random() < 0.5 and random.random() < 0.5

    assert with_values(emitted, emitted, 20, 0) == ""


@pytest.mark.parametrize(("shown", "alike"), [(lambda outcome: outcome, True), (lambda outcome: 2, False)])
def test_an_outcome_may_be_asked_for_in_one_run_alone_if_another_follows_it_at_its_site(shown, alike):
    def emitted(draws, boundary=None):
        with answered_everywhere(draws, boundary):
            assert random.random() >= 0
            rounds = 2 if boundary is None else 1
            bonus = [draws.categorical(np.array([0.5, 0.5]), ("bonus",)) for _ in range(rounds)][-1]
        return bonus if boundary is None else shown(bonus)

    assert (with_values(emitted, emitted, 20, 0) == "") is alike
