"""A random number of size (), with which scipy.stats draws, and arrays of any size that are drawn from."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from test_support.intercept.answered_laws import law_of

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


@pytest.mark.parametrize("name", DRAWN)
def test_it_is_an_array_as_the_librarys_is(name):
    assert isinstance(DRAWN[name](), np.ndarray)
    assert law_of(lambda: bool((DRAWN[name]()[..., None] < 0.3)[0]))[True] == pytest.approx(BELOW.get(name, 0.3))


@pytest.mark.parametrize("given", [{}, {"random_state": RNG}])
def test_scipy_draws_tokens_by_their_weights(given):
    weights = scipy.stats.rv_discrete(values=([0, 1, 2], [0.5, 0.125, 0.375]))
    assert law_of(lambda: int(weights.rvs(**given))) == pytest.approx({0: 0.5, 1: 0.125, 2: 0.375})


def test_entries_of_a_pool_that_are_equal_are_one_outcome():
    pool = np.repeat([3, 0, 7], [5000, 2500, 12500])
    assert law_of(lambda: int(RNG.choice(pool))) == pytest.approx({0: 0.125, 3: 0.25, 7: 0.625}, abs=1e-12)
    assert len(law_of(lambda: tuple(RNG.choice(pool, 2).tolist()))) == 9


def test_entries_of_a_pool_that_have_no_order_are_drawn_too():
    pool = np.array([None, "end"] * 10, dtype=object)
    assert law_of(lambda: RNG.choice(pool)) == pytest.approx({None: 0.5, "end": 0.5})
