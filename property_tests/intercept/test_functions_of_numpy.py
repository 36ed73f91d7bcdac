"""Functions of NumPy on random numbers that are given one by one, in lists and for their order: exact laws."""

from __future__ import annotations

import itertools
import random
from functools import partial

import numpy as np
import pytest

from specverify.intercept.cpython import patches
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import NeedsValue
from specverify.laws.enumeration import program_law

RNG = np.random.default_rng(0)


def law(compute):
    def program(draws):
        with answered_everywhere(draws):
            found = np.asarray(compute())
            return found.tolist() if found.ndim == 0 else tuple(found.tolist())

    return dict(patches.again(partial(program_law, program)).probabilities)


def numbers(count=2):
    return [random.random() for _ in range(count)]


COINS = {
    "where": lambda: np.log(np.where(True, random.random(), 1.0)) < np.log(0.3),
    "copysign": lambda: np.copysign(np.where(random.random() < 0.5, 1.0, -1.0) * random.random(), 1.0) < 0.3,
    "select": lambda: np.select([random.random() < 0.5], [random.random()], 2.0) < 0.6,
    "clip of a list": lambda: np.log(np.clip(numbers(1), 1e-300, None))[0] < np.log(0.3),
    "isnan of a list": lambda: not np.isnan(numbers()).any() and random.random() < 0.3,
    "stack": lambda: np.log(np.stack([random.random(), 0.5]))[0] < np.log(0.3),
    "concatenate": lambda: np.log(np.concatenate([numbers(1), [0.5]]))[0] < np.log(0.3),
    "append": lambda: np.log(np.append(np.ones(1), random.random()))[1] < np.log(0.3),
    "divide where": lambda: np.divide(RNG.random(1), [1.0], out=np.full(1, 9.0), where=[True])[0] < 0.3,
    "not where": lambda: (
        np.divide(RNG.random(1), [1.0], out=np.zeros(1), where=[False])[0] == 0 and random.random() < 0.3
    ),
    "modf": lambda: np.modf(random.random() + 0.3)[1] == 1,
    "divmod": lambda: np.divmod(3 * RNG.random(1), 1.0)[1][0] < 0.3,
    "logaddexp": lambda: np.logaddexp(np.log(RNG.random()), 0.0) < np.log1p(0.3),
    "cube root": lambda: np.cbrt(RNG.random()) < np.cbrt(0.3),
    "a float type": lambda: np.multiply(RNG.random(1), 2.0, dtype=np.float32)[0] < 0.6,
    "decreasing bins": lambda: np.digitize(random.random(), [0.8, 0.3]) == 2,
    "NaN beside": lambda: np.nan_to_num([np.nan, random.random()], nan=9.0).min() < 0.3,
    "copied": lambda: (row := np.zeros(2), np.copyto(row, numbers()))[0][1] < 0.3,
    "an array, named": lambda: np.array(object=numbers(1))[0] < 0.3,
    "what is to be an array, named": lambda: np.asarray(a=numbers(1))[0] < 0.3,
    "what is gone through, named": lambda: np.fromiter(iter=iter(numbers(1)), dtype=float)[0] < 0.3,
    "what is to lie in a row, named": lambda: np.ascontiguousarray(a=np.array(numbers(1)))[0] < 0.3,
    "a number": lambda: random.randint(0, 999) < 300,
    "a row": lambda: bool((RNG.integers(0, 1000, 3) < 300)[2]),
}


@pytest.mark.parametrize("name", COINS)
def test_a_coin_of_three_tenths(name):
    assert law(COINS[name])[True] == pytest.approx(0.3, abs=1e-12)


@pytest.mark.parametrize("make", [np.array, np.asarray, lambda values, dtype: np.fromiter(iter(values), dtype)])
def test_an_array_of_whole_numbers_or_bools_is_one(make):
    assert law(lambda: make([3 * random.random(), 0.7], int)) == pytest.approx(
        dict.fromkeys([(0, 0), (1, 0), (2, 0)], 1 / 3)
    )
    assert law(lambda: make([random.random(), 0.0], bool)) == {(True, False): 1.0}


def test_nan_beside_random_numbers_is_replaced():
    found = law(lambda: np.nan_to_num([random.random(), np.nan, np.inf], nan=0.1) < 0.3)
    assert found == pytest.approx({(True, True, False): 0.3, (False, True, False): 0.7})


def test_sorted_numbers_are_compared_without_an_order():
    assert law(lambda: np.sort(RNG.random(2)) < 0.3) == pytest.approx(
        {(True, True): 0.09, (True, False): 0.42, (False, False): 0.49}
    )
    assert law(lambda: np.sort(numbers(3))[1] < 0.3)[True] == pytest.approx(0.3**2 * (3 - 2 * 0.3))


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("bins", [[0.75, 0.25, 0.125], [0.125, 0.25, 0.75]])
def test_a_number_that_stands_at_an_edge_is_in_the_cell_that_numpy_says(bins, right):
    found = law(lambda: np.digitize(np.minimum(random.random(), 0.25), bins, right=right))
    assert set(found) == {int(np.digitize(end, bins, right=right)) for end in (0.05, 0.2, 0.25)}
    assert found[int(np.digitize(0.25, bins, right=right))] == pytest.approx(0.875 if right else 0.75)


def test_an_order_of_uniforms_is_a_permutation():
    assert law(lambda: np.argsort(numbers(3))) == pytest.approx(dict.fromkeys(itertools.permutations(range(3)), 1 / 6))


def test_a_value_at_a_place_of_very_many_is_refused():
    with pytest.raises(NeedsValue, match="an order statistic of more than 64"):
        law(lambda: np.sort(RNG.random(65))[3] < 0.3)


def test_a_comparison_of_one_of_many_numbers_is_one_branch_and_a_value_is_each_of_them():
    assert law(lambda: random.randint(0, 999) >= 999) == pytest.approx({False: 0.999, True: 0.001})
    assert law(lambda: list(range(100))[random.randrange(100)]) == pytest.approx(dict.fromkeys(range(100), 0.01))
    assert law(lambda: random.randrange(100) < random.randrange(100))[True] == pytest.approx(0.495)
    assert law(lambda: random.randrange(100) + random.randrange(100) < 1)[True] == pytest.approx(1e-4)
    assert law(lambda: max(range(2), key=lambda _: random.randrange(100)))[0] == pytest.approx(0.505)


@pytest.mark.parametrize(
    ("needs_floats", "sentence"),
    [
        (lambda: np.interp(RNG.random(), [0, 1], [0, 2]) < 1, r"^interp at {}: .*; compare the random number itself"),
        (lambda: np.percentile(RNG.random(2), 50) < 0.5, r" at {}: .*; compare (the random number itself|them)"),
        (lambda: [bool(u < 0.5) for u in np.nditer(RNG.random(2))], r"compare the random number itself \({}\)"),
    ],
    ids=["interp", "percentile", "nditer"],
)
def test_a_function_that_accepts_only_arrays_of_floats_is_refused_by_its_line(needs_floats, sentence):
    with pytest.raises(NeedsValue, match=sentence.format(r"test_functions_of_numpy\.py:\d+")):
        law(needs_floats)
