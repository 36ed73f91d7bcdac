"""Idioms of rejection samplers: the right ones have the law of rejection sampling, and each has a twin that has not.

Three judges: the law in one world, for all of them; planned samples of what the samplers draw by themselves; and every
exact check, in a share of the scenarios.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from specverify.base.verdict import Status
from specverify.statistics import FitVerdict, confirmed_fit, samples_for, stage_level
from test_support.idioms.judged import rejection_law
from test_support.idioms.tables import IDIOMS
from test_support.idioms.verdicts import told
from test_support.idioms.world import distance, sample
from tools.pages.idioms_page import begin_of, end_of, laws_of, of_law, on_page

pytestmark = pytest.mark.usefixtures("modules_searched")

ALARM, MISS = 1e-6, 1e-3
"""False-alarm probability of all samples of right idioms together, and of a miss of one twin."""
NEAR, FAR = 1e-6, 0.04
"""What float32 rounds of a law, and less than what any twin is away from it, in the one world."""
SHARE = 3
"""A share of the scenarios with probabilities that are rounded in 16 bits."""
KNOWN = tuple(idiom for idiom in IDIOMS if not idiom.unknown)
UNKNOWN = tuple(idiom for idiom in IDIOMS if idiom.unknown)


LINES = on_page()


def named(idioms):
    return pytest.mark.parametrize("idiom", idioms, ids=[f"{idiom.table}-{idiom.name}" for idiom in idioms])


def test_there_are_many_and_no_two_of_one_table_have_one_name():
    assert len(IDIOMS) >= 300
    assert len(UNKNOWN) <= 5
    assert max(Counter((idiom.table, idiom.name) for idiom in IDIOMS).values()) == 1


def test_the_page_has_a_line_for_each_and_none_is_refuted_though_right():
    assert set(LINES) == set(map(begin_of, IDIOMS))
    held = [line for line in LINES.values() if line.endswith("| holds | refuted |")]
    assert len(held) == len(KNOWN)


@pytest.mark.thorough(keep=12)
@named(KNOWN)
def test_a_right_idiom_has_the_law_of_rejection_sampling_and_its_twin_is_far_from_it(idiom):
    right, wrong = distance(idiom, idiom.right), distance(idiom, idiom.wrong)
    assert right < NEAR
    assert wrong > FAR
    assert f"{begin_of(idiom)} {of_law(right)} | {of_law(wrong)} | " in LINES[begin_of(idiom)]


def drawn_by_itself(idiom, verify, far):
    """Return what a planned sample of a sampler, run as it is, says of the law of rejection sampling."""
    law, level = rejection_law(idiom.gamma), ALARM / len(IDIOMS)
    number = samples_for(law, far, stage_level(level), MISS / 2)
    return confirmed_fit(
        partial(sample, idiom, verify), law, samples=number, false_alarm=level, miss=MISS, seed=0
    ).verdict


@pytest.mark.thorough(keep=200)
@named(IDIOMS)
def test_a_sample_that_it_draws_by_itself_fits_and_one_of_its_twin_does_not(idiom):
    far = 0.15 if idiom.unknown else min(0.15, 0.8 * distance(idiom, idiom.wrong))
    assert drawn_by_itself(idiom, idiom.right, far) is FitVerdict.FITS
    assert drawn_by_itself(idiom, idiom.wrong, far) is FitVerdict.REFUTED


@pytest.mark.thorough
@named(KNOWN)
def test_the_checks_hold_the_right_one_and_refute_the_twin(idiom):
    place = IDIOMS.index(idiom)
    assert told(idiom.right, idiom.gamma, place) == (Status.HOLDS, "")
    assert told(idiom.wrong, idiom.gamma, place)[0] == Status.REFUTED
    assert LINES[begin_of(idiom)].endswith(end_of(idiom, Status.HOLDS, Status.REFUTED))


@pytest.mark.thorough
def test_what_several_numbers_decide_holds_or_is_refuted():
    sums = next(idiom for idiom in KNOWN if idiom.name == "sum round the clock")
    assert told(sums.right, sums.gamma, 3) == (Status.HOLDS, "")
    status, why = told(sums.wrong, sums.gamma, 3)
    assert (status, why.partition(":")[0]) == (Status.REFUTED, "law_is_target")


@pytest.mark.thorough
@named(UNKNOWN)
def test_what_cannot_be_told_says_why_and_a_wrong_twin_does_not_hold(idiom):
    status, why = told(idiom.right, idiom.gamma, SHARE)
    assert status == Status.UNKNOWN
    assert idiom.unknown in why
    twin = told(idiom.wrong, idiom.gamma, SHARE)[0]
    assert twin in {Status.UNKNOWN, Status.REFUTED}
    assert LINES[begin_of(idiom)] == f"{begin_of(idiom)} {laws_of(idiom)} {end_of(idiom, status, twin)}"
