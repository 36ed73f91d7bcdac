"""Idioms of JAX: the right ones have the law of rejection sampling, and each has a twin that has not.

Three judges: the law in one world, for all of them; planned samples of what they draw by themselves; and every exact
check, in a share of the scenarios, for a twin in share after share until one refutes it. ``jax_page.py`` writes the
table.
"""

from __future__ import annotations

from test_support.jax import needs_jax  # noqa: F401 - it skips the file where JAX is not installed

# isort: split
from functools import partial

import pytest

from specverify.base.verdict import Status
from specverify.intercept.refusals import NeedsValue
from specverify.statistics import FitVerdict, confirmed_fit, samples_for, stage_level
from test_support.idioms.judged import rejection_law
from test_support.jax import coins, tokens, verifiers
from test_support.jax.idiom import idioms_of
from test_support.jax.verdicts import refuted, told
from test_support.jax.world import distance, sample
from tools.pages.jax_page import line_of, on_page

pytestmark = pytest.mark.usefixtures("modules_searched")

ALARM, MISS = 1e-6, 1e-3
"""False-alarm probability of all samples of right idioms together, and of a miss of one twin."""
NEAR, FAR = 1e-6, 0.005
"""What float32 rounds of a law, and less than what any twin is away from it, in the one world."""
IDIOMS = idioms_of(coins, tokens, verifiers)
KNOWN = tuple(idiom for idiom in IDIOMS if not idiom.unknown)
UNKNOWN = tuple(idiom for idiom in IDIOMS if idiom.unknown)
LINES = on_page()


def named(idioms):
    return pytest.mark.parametrize("idiom", idioms, ids=[f"{idiom.part}-{idiom.name}" for idiom in idioms])


def test_there_are_many_and_the_page_has_a_line_for_each():
    assert len(IDIOMS) >= 50
    assert len(UNKNOWN) <= 2
    assert len({(idiom.part, idiom.name) for idiom in IDIOMS}) == len(IDIOMS)
    assert list(LINES) == [(idiom.part, idiom.name) for idiom in IDIOMS]


@named(KNOWN)
def test_a_right_idiom_has_the_law_of_rejection_sampling_and_its_twin_is_far_from_it(idiom):
    right, wrong = distance(idiom.right, idiom.gamma), distance(idiom.wrong, idiom.gamma)
    assert right < NEAR
    assert wrong > FAR
    assert LINES[idiom.part, idiom.name] == line_of(idiom, wrong)


@named(UNKNOWN)
def test_what_cannot_be_told_says_why(idiom):
    for verify in (idiom.right, idiom.wrong):
        with pytest.raises(NeedsValue, match=idiom.unknown):
            distance(verify, idiom.gamma)
    assert LINES[idiom.part, idiom.name] == line_of(idiom, None)


@pytest.mark.thorough(keep=30)
@named(IDIOMS)
def test_a_sample_that_it_draws_by_itself_fits_and_one_of_its_twin_does_not(idiom):
    law, level = rejection_law(idiom.gamma), ALARM / len(IDIOMS)
    far = 0.15 if idiom.unknown else min(0.15, 0.8 * distance(idiom.wrong, idiom.gamma))
    if far < 0.05:
        pytest.skip("its twin is too near for a sample of so few calls")
    number = samples_for(law, far, stage_level(level), MISS / 2)
    fits = partial(
        confirmed_fit, law=law, samples=number, false_alarm=level, miss=MISS, seed=0, confirmation_factor=1
    )  # a second stage of the same size misses as seldom as the first; a larger one costs two thirds of the test
    assert fits(partial(sample, idiom.right, idiom.gamma)).verdict is FitVerdict.FITS
    assert fits(partial(sample, idiom.wrong, idiom.gamma)).verdict is FitVerdict.REFUTED


@pytest.mark.thorough(keep=30)
@named(KNOWN)
def test_the_checks_hold_the_right_one_and_refute_the_twin(idiom):
    place = IDIOMS.index(idiom)
    assert told(idiom.right, idiom.gamma, place) == (Status.HOLDS, "")
    assert refuted(idiom.wrong, idiom.gamma, place)
