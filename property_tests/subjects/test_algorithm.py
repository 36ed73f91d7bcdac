"""An algorithm as a subject: random numbers after conditions, and declared laws."""

from __future__ import annotations

from property_tests.laws.test_long_texts import checked
from specverify.checks import Conditions, check_named
from specverify.mutants.mutant import correct
from specverify.subjects.algorithm import algorithm_subject


def test_a_row_that_declares_a_law_is_left_to_that_law():
    assert checked("lenience")[0] == "it declares another law than the target's"


def test_conditions_choose_the_random_numbers():
    case = next(iter(check_named("long_law_is_target").cases(algorithm_subject(correct("egag")))))
    assert not any(case.examine(Conditions(seed=seed)).failed for seed in range(3))
