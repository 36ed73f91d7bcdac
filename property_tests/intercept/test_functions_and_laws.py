"""Functions with rules of their own, and laws that are functions of one uniform: right idioms, and their wrong twins.

As in ``test_algebra.py``: the exact law of an idiom must fit a planned sample that the library draws by itself, and the
sample of a twin that looks like it must refute it.
"""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import NeedsValue
from specverify.laws.draws import Tape
from specverify.laws.enumeration import program_law
from specverify.statistics import FitVerdict
from test_support.intercept.drawing_calls import LINES, judged, pairs_of
from test_support.intercept.numpy_and_random import NUMPY

STATE = np.random.RandomState(0)
LIBRARY = NUMPY._replace(names={**NUMPY.names, "math": math, "random": random})
IDIOMS = """
np.sinh(rng.random()) < np.sinh(0.3) ;; np.sinh(rng.random()) < np.sinh(0.6)
np.arcsinh(2 * rng.random()) < 0.5 ;; np.arcsinh(rng.random()) < 0.5
np.arctanh(rng.random()) < 0.5 ;; np.tanh(rng.random()) < 0.3
np.tan(rng.random()) < 0.5 ;; np.arctan(rng.random()) < 0.3
np.tan(np.pi * (rng.random() - 0.5)) < 1 ;; np.tan(np.pi * (rng.random() - 0.5)) < 0
np.arcsin(2 * rng.random() - 1) < 0.5 ;; np.arcsin(rng.random()) < 0.5
np.arccos(rng.random()) < 1 ;; np.arcsin(rng.random()) < 1
np.degrees(rng.random()) < 20 ;; np.radians(rng.random()) < 0.01
np.rad2deg(rng.random()) < 20 ;; np.deg2rad(rng.random()) < 0.01
math.sinh(random.random()) < 0.3 ;; math.sinh(random.random()) < 0.6
math.asinh(random.random()) < 0.3 ;; math.asinh(random.random()) < 0.6
math.atanh(random.random()) < 0.3 ;; math.tanh(random.random()) < 0.6
math.tan(random.random()) < 0.3 ;; math.atan(random.random()) < 0.6
math.asin(random.random()) < 0.3 ;; math.acos(random.random()) < 0.3
math.acos(random.random()) < 0.9 ;; math.asin(random.random()) < 0.9
math.erf(random.random()) < 0.3 ;; math.erf(random.random()) < 0.6
math.erfc(random.random()) < 0.6 ;; math.erfc(random.random()) < 0.3
math.degrees(random.random()) < 20 ;; math.degrees(random.random()) < 40
math.radians(180 * random.random()) < 1 ;; math.radians(180 * random.random()) < 2
rng.normal(1, 2) < 0.5 ;; rng.normal(1, 2) < 1.5
state.normal(0, 2) < 0.5 ;; state.normal(0, 0.5) < 0.5
np.sum(state.standard_normal(2) < [0.5, 0]) ;; np.sum(state.standard_normal(2) < [-0.5, 0])
np.exp(rng.normal()) < 2 ;; np.exp(rng.normal()) < 1
np.abs(rng.normal()) < 0.5 ;; np.abs(rng.normal()) < 1
rng.standard_normal(dtype=np.float32) < 0.5 ;; rng.standard_normal(dtype=np.float32) < 0
np.random.randn(2, 2)[1, 0] < 0.5 ;; np.random.randn(2, 2)[1, 0] < -0.5
rng.lognormal(0, 0.5) < 1.2 ;; rng.lognormal(0, 0.5) < 0.8
state.lognormal(0.5, 2) < 0.7 ;; state.lognormal(-0.5, 2) < 0.7
rng.laplace(0, 2) < 1 ;; rng.laplace(0, 1) < 1
state.laplace([0, 1], 2)[1] < 1.5 ;; state.laplace([0, 1], 2)[0] < 1.5
rng.standard_cauchy() < 0.5 ;; rng.standard_cauchy() < -0.5
state.standard_cauchy(2)[1] < 0.5 ;; state.standard_normal(2)[1] < -0.5
rng.triangular(0, 1, 3) < 0.7 ;; rng.triangular(0, 2, 3) < 0.7
state.triangular(0, 0, 1) < 0.5 ;; state.triangular(0, 1, 1) < 0.5
rng.poisson(1.5) < 2 ;; rng.poisson(3) < 2
state.poisson(0.5) < 1 ;; state.poisson(1) < 1
rng.negative_binomial(2, 0.5) < 2 ;; rng.negative_binomial(2, 0.25) < 2
state.negative_binomial(1.5, 0.5) < 1 ;; state.negative_binomial(3, 0.5) < 1
rng.logseries(0.5) < 2 ;; rng.logseries(0.8) < 2
random.gauss(1, 2) < 0.5 ;; random.gauss(1, 2) < 1.5
random.normalvariate(1, 2) < 0.5 ;; random.normalvariate(0, 2) < 0.5
random.lognormvariate(0.5, 2) < 0.7 ;; random.lognormvariate(-0.5, 2) < 0.7
random.triangular(0, 3, 1) < 0.7 ;; random.triangular(0, 3, 2) < 0.7
random.triangular() < 0.3 ;; random.triangular() < 0.5
random.betavariate(1, 2) < 0.25 ;; random.betavariate(2, 1) < 0.25
random.betavariate(0.5, 1) < 0.25 ;; random.betavariate(1, 0.5) < 0.25
"""
PAIRS = pairs_of(IDIOMS)


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("pair", PAIRS, ids=[right for right, _ in PAIRS])
def test_an_idiom_has_its_exact_law_and_its_twin_is_refuted(pair):
    assert judged(LIBRARY, pair, "test_functions_and_laws.py") == [FitVerdict.FITS, FitVerdict.REFUTED]


def test_all_samples_together_keep_to_their_share_of_false_alarms():
    assert len(PAIRS) < LINES / 4


# What a generator keeps: of two normal numbers that are made at once, the second one is drawn from no state of its own


def law(program):
    def run(draws):
        with answered_everywhere(draws):
            return program()

    return program_law(run).probabilities


def test_two_numbers_of_gauss_consume_two_doubles_as_the_library_does():
    def program():
        random.seed(3)
        random.gauss(), random.gauss()
        one = bool(random.random() < 0.5)
        random.seed(3)
        random.random(), random.random()
        return one == bool(random.random() < 0.5)

    assert law(program) == {True: 1.0}


SEEDED = {
    "gauss": (lambda: random.seed(3), lambda: random.gauss()),  # noqa: PLW0108 - looked up in the block
    "RandomState": (lambda: np.random.seed(3), lambda: np.random.standard_normal()),  # noqa: NPY002, PLW0108
}


@pytest.mark.parametrize("generator", SEEDED)
def test_a_number_that_was_kept_is_the_same_after_the_same_seed(generator):
    seed, draw = SEEDED[generator]

    def program():
        seed()
        one = bool(draw() < 0), bool(draw() < 0)
        seed()
        return one == (bool(draw() < 0), bool(draw() < 0)), *one

    found = law(program)
    assert all(same for same, *_ in found)
    assert list(found.values()) == pytest.approx([0.25] * 4)


def test_a_generator_keeps_what_it_kept_before_a_run():
    random.seed(5)
    random.gauss()
    kept = random._inst.gauss_next
    law(lambda: bool(random.gauss() < 0))
    assert random._inst.gauss_next == kept


@pytest.mark.parametrize("call", [lambda: np.random.default_rng(0).normal(0, -1), lambda: STATE.normal(0, -1)])
def test_a_wrong_scale_fails_as_in_the_library(call):
    with pytest.raises(ValueError, match="scale"), answered_everywhere(Tape(0)):
        call()


def test_the_ends_of_a_normal_number_are_numbers_that_a_generator_can_return():
    for end, sign in ((0.0, -1), (1.0, 1)):
        with answered_everywhere(Tape(0), end):
            assert 8 < sign * np.random.default_rng(0).normal() < 8.5
            assert 8 < sign * random.gauss(0, 1) < 8.5


def test_an_expectation_that_is_too_large_is_refused():
    with pytest.raises(NeedsValue, match="Poisson"), answered_everywhere(Tape(0)):
        np.random.default_rng(0).poisson(1e6)
