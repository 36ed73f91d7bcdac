"""Length rules at their edges: bounds that meet, thresholds at their ends, what they cannot be."""

from __future__ import annotations

from fractions import Fraction

import pytest

from property_tests.reference.lengths.test_entropy_adaptive import ONE_HOT, UNIFORM, by_length
from reference import (
    Plan,
    accepted_ratio,
    confidence,
    constant,
    entropy_adaptive,
    entropy_gamma,
    normalized_entropy,
)
from test_support.laws.rational import always, pmf


def test_the_bounds_of_dynamic_k_may_meet_its_start_and_its_shares_may_be_zero_and_one():
    rule = accepted_ratio(start=3, minimum=3, maximum=3, low=0, high=1)
    assert [rule.update(3, 3, accepted) for accepted in range(4)] == [3, 3, 3, 3]
    wide = accepted_ratio(start=3, minimum=0, maximum=9, low=0, high=1)
    assert [wide.update(3, 3, accepted) for accepted in range(4)] == [2, 3, 3, 4]
    assert accepted_ratio(start=1, minimum=0, maximum=2).update(1, 1, 1) == 2


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"start": -1}, "^start is -1, expected an integer >= 0"),
        ({"minimum": -1}, "^minimum is -1, expected an integer >= 0"),
        ({"maximum": 1.5}, "^maximum is 1.5, expected an integer >= 0"),
        ({"start": 13}, r"^start is 13, expected a length within \[3, 12\]"),
        ({"low": 0.5, "high": 0.5}, "^low is 0.5 and high is 0.5, expected 0 <= low < high <= 1"),
        ({"high": 1.5}, "^low is 0.4 and high is 1.5, expected 0 <= low < high <= 1"),
        ({"low": -0.1}, "^low is -0.1 and high is 0.8, expected 0 <= low < high <= 1"),
    ],
)
def test_what_dynamic_k_cannot_be_is_named(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        accepted_ratio(**options)


@pytest.mark.parametrize("make", [constant, lambda gamma: confidence(0.5, gamma)], ids=["constant", "confidence"])
def test_a_rule_without_a_state_of_its_own_hands_on_what_it_is_given(make):
    rule = make(3)
    assert (rule.init, rule.plan("kept", (0,)), rule.update("kept", 3, 1)) == (None, Plan(3, "kept"), "kept")


def test_thresholds_at_their_ends_are_allowed():
    row = pmf("1/2", "1/2", 0)
    assert [confidence(0, 2).stop_after(row, token) for token in range(3)] == [False] * 3
    assert [confidence(1, 2).stop_after(row, token) for token in range(3)] == [True] * 3
    assert [confidence(Fraction(1, 2), 2).stop_after(row, token) for token in range(3)] == [False, False, True]
    assert constant(0).plan(None, (0,)) == Plan(0, None)
    assert not constant(3).stop_after(row, 0)


def test_the_entropy_map_has_its_exact_ends():
    half = pmf("1/2", "1/2")
    assert [normalized_entropy(row) for row in (pmf(1), ONE_HOT, UNIFORM, half)] == [0, 0, 1, 1]
    assert normalized_entropy(pmf("1/2", "1/2", 0, 0)) == 0.5
    assert entropy_gamma(pmf("1/2", "1/2", 0, 0), 2, 8) == 5


def test_the_entropy_rule_rounds_half_up_and_averages_from_its_first_round():
    """Entropies 1/2 and 1 between 1 and 4: raw gamma 2.5, then 1; with beta 1/4 the average is 1.375."""
    rule = entropy_adaptive(by_length(pmf("1/2", "1/2", 0, 0), UNIFORM), 1, 4, beta=0.25)
    first = rule.plan(rule.init, (0,))
    assert first == Plan(3, 2.5, (("normalized_entropy", 0.5), ("gamma", 3)))
    assert rule.plan(first.state, (0, 0)) == Plan(1, 1.375, (("normalized_entropy", 1.0), ("gamma", 1)))
    assert rule.update(1.375, 3, 0) == 1.375
    assert not rule.stop_after(UNIFORM, 0)
    unsmoothed = entropy_adaptive(by_length(ONE_HOT, UNIFORM), 1, 4)
    assert unsmoothed.plan(4.0, (0, 0)).state == 1


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: entropy_adaptive(always(UNIFORM), -1, 2), "^gamma_min is -1, expected an integer >= 0"),
        (lambda: entropy_adaptive(always(UNIFORM), 0, -2), "^gamma_max is -2, expected an integer >= 0"),
        (lambda: entropy_adaptive(always(UNIFORM), 1, 2, -0.1), "^beta is -0.1, expected a number in"),
        (lambda: confidence(-0.1, 2), "^threshold is -0.1, expected a probability"),
        (lambda: confidence(1.1, 2), "^threshold is 1.1, expected a probability"),
        (lambda: confidence(0.5, -1), "^gamma is -1, expected an integer >= 0"),
        (lambda: constant(-1), "^gamma is -1, expected an integer >= 0"),
    ],
)
def test_a_refusal_names_what_is_wrong(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
