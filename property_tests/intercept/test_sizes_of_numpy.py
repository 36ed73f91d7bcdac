"""A random number of size (), which NumPy gives as an array without axes, and with which scipy.stats draws."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from specverify.intercept.everywhere import answered_everywhere
from specverify.laws.enumeration import program_law

RNG = np.random.default_rng(0)
DRAWN = {
    "uniform": lambda: RNG.uniform(0.0, 1.0, ()),
    "np.random.uniform": lambda: np.random.uniform(size=()),  # noqa: NPY002 - what scipy calls
    "random": lambda: RNG.random(()),
    "exponential": lambda: RNG.exponential(size=()),
    "standard_exponential": lambda: RNG.standard_exponential(size=()),
    "gumbel": lambda: RNG.gumbel(size=()),
}
BELOW = {"exponential": 1 - np.exp(-0.3), "standard_exponential": 1 - np.exp(-0.3), "gumbel": np.exp(-np.exp(-0.3))}


def law_of(program):
    def answered(draws):
        with answered_everywhere(draws):
            return program()

    return program_law(answered).probabilities


@pytest.mark.parametrize("name", DRAWN)
def test_it_is_an_array_as_the_librarys_is(name):
    assert isinstance(DRAWN[name](), np.ndarray)
    assert law_of(lambda: bool((DRAWN[name]()[..., None] < 0.3)[0]))[True] == pytest.approx(BELOW.get(name, 0.3))


@pytest.mark.parametrize("given", [{}, {"random_state": RNG}])
def test_scipy_draws_tokens_by_their_weights(given):
    weights = scipy.stats.rv_discrete(values=([0, 1, 2], [0.5, 0.125, 0.375]))
    assert law_of(lambda: int(weights.rvs(**given))) == pytest.approx({0: 0.5, 1: 0.125, 2: 0.375})
