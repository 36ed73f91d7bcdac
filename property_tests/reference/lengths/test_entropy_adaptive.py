"""Length rules on their own: the entropy map, its moving average, dynamic k, confidence, and their refusals."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import (
    LengthRule,
    Plan,
    Sampled,
    Task,
    accepted_ratio,
    chain_decoder,
    confidence,
    constant,
    entropy_adaptive,
    entropy_gamma,
    generate,
    model_drafter,
    normalized_entropy,
)
from reference.algorithms import confidence_stopping, dynamic_k, egag, speculative_sampling
from reference.lengths.constant import never
from reference.verifiers.speculative_sampling import speculative_sampling as speculative
from specverify.laws.draws import Tape
from specverify.laws.model_strategies import pmfs, prompts, tasks
from specverify.laws.tables import table_pair
from test_support.laws.rational import always, pmf

rows = st.integers(1, 6).flatmap(pmfs)
bounds = st.tuples(st.integers(0, 4), st.integers(0, 8)).map(lambda pair: (pair[0], pair[0] + pair[1]))

ONE_HOT, UNIFORM = pmf(1, 0, 0, 0), pmf(*["1/4"] * 4)


# The entropy map


@pytest.mark.parametrize(
    ("q", "entropy", "gamma"),
    [((".7", ".1", ".1", ".1"), 0.678390, 3.2513), ((".97", ".01", ".01", ".01"), 0.120970, 7.1532)],
)
def test_the_map_has_its_known_values(q, entropy, gamma):
    assert normalized_entropy(pmf(*q)) == pytest.approx(entropy, abs=5e-7)
    assert entropy_gamma(pmf(*q), 1, 8) == pytest.approx(gamma, abs=5e-5)


@given(bounds)
def test_uniform_drafts_least_and_a_point_mass_drafts_most(limits):
    assert entropy_gamma(UNIFORM, *limits) == limits[0]
    assert entropy_gamma(ONE_HOT, *limits) == limits[1]
    assert entropy_gamma(pmf(1), *limits) == limits[1]


@given(rows, bounds)
def test_entropy_and_gamma_stay_within_their_bounds(row, limits):
    assert 0 <= normalized_entropy(row) <= 1
    assert limits[0] <= entropy_gamma(row, *limits) <= limits[1]


@given(rows, st.data())
def test_entropy_does_not_depend_on_the_order_of_tokens(row, data):
    shuffled = data.draw(st.permutations(row.tolist()))
    assert normalized_entropy(np.array(shuffled, dtype=object)) == pytest.approx(normalized_entropy(row), abs=1e-12)


@given(rows, st.fractions(0, 1, max_denominator=8), bounds)
def test_gamma_falls_as_the_drafter_is_mixed_with_the_uniform(row, share, limits):
    mixed = (1 - share) * row + share * Fraction(1, len(row))
    assert entropy_gamma(mixed, *limits) <= entropy_gamma(row, *limits) + 1e-9


@given(st.tuples(rows, rows), bounds)
def test_gamma_does_not_rise_with_the_entropy(pair, limits):
    low, high = sorted(pair, key=normalized_entropy)
    assert entropy_gamma(high, *limits) <= entropy_gamma(low, *limits)


# Rounds of the entropy rule


def planned(rule, prefixes):
    """Return the plan of each round, the state handed on."""
    state, plans = rule.init, []
    for prefix in prefixes:
        plans.append(rule.plan(state, prefix))
        state = rule.update(plans[-1].state, plans[-1].gamma, 0)
    return plans


def by_length(first, then):
    return lambda tokens: first if len(tokens) == 1 else then


@given(st.integers(0, 10_000), st.lists(prompts(3), min_size=1, max_size=4))
def test_without_smoothing_a_plan_depends_on_its_own_prefix_alone(seed, prefixes):
    rule = entropy_adaptive(table_pair("zeros", 3, seed)[1], 0, 8)
    assert [plan.gamma for plan in planned(rule, prefixes)] == [planned(rule, [prefix])[0].gamma for prefix in prefixes]


def test_the_moving_average_stays_real_and_reaches_its_limit():
    """From 5 towards 1 with beta 0.9 it is 1 + 4 * 0.9^n; rounding the state would leave it at 5 for ever."""
    rule = entropy_adaptive(by_length(ONE_HOT, UNIFORM), 1, 5, beta=0.9)
    plans = planned(rule, [(0,), *[(0, 0)] * 40])
    assert [plan.state for plan in plans] == pytest.approx([1 + 4 * 0.9**n for n in range(41)])
    assert plans[2].state < 4.5
    assert [plan.gamma for plan in plans] == [min(max(math.floor(plan.state + 0.5), 1), 5) for plan in plans]
    assert (plans[0].gamma, plans[2].gamma, plans[-1].gamma) == (5, 4, 1)


@given(bounds, st.integers(0, 1000))
def test_every_planned_gamma_is_an_integer_within_the_bounds(limits, seed):
    rule = entropy_adaptive(table_pair("zeros", 3, seed)[1], *limits, beta=0.5)
    plans = planned(rule, [(0,) * n for n in range(1, 6)])
    assert all(type(plan.gamma) is int and limits[0] <= plan.gamma <= limits[1] for plan in plans)


def test_entropy_is_read_from_the_raw_drafter():
    """With a truncated, one-hot q the entropy would always be 0 and gamma always the largest."""
    task = Task(always(UNIFORM), always(ONE_HOT), raw_draft=always(UNIFORM), horizon=20)
    decoder = egag.build(task, gamma_min=1, gamma_max=6)
    round_ = decoder.step(Tape(0), decoder.init((0,)))[1]
    assert dict(round_.trace) == {"normalized_entropy": 1.0, "gamma": 1}
    assert len(round_.draft) == 1


def test_the_bound_by_the_horizon_does_not_reach_the_average():
    task = Task(always(UNIFORM), always(ONE_HOT), horizon=3)
    decoder = egag.build(task, gamma_min=0, gamma_max=8, beta=0.5)
    state, round_ = decoder.step(Tape(0), decoder.init((0,)))
    assert (len(round_.draft), dict(round_.trace)["gamma"], state.length) == (2, 8, 8.0)


@given(tasks(3, 1, 8), prompts(3), st.integers(0, 4), st.integers(0, 1000))
def test_equal_bounds_are_plain_speculative_sampling_round_by_round(task, prompt, gamma, seed):
    adaptive = egag.build(task, gamma_min=gamma, gamma_max=gamma, beta=0.5)
    plain = speculative_sampling.build(task, gamma=gamma)
    found, expected = (generate(decoder, prompt, Tape(seed)).rounds for decoder in (adaptive, plain))
    assert [round_._replace(trace=()) for round_ in found] == list(expected)


def test_a_rule_is_told_what_was_drafted_not_what_it_planned():
    """The horizon leaves room for two drafts of the five planned; both are accepted."""
    told = LengthRule(None, lambda state, prefix: Plan(5, state), never, lambda state, *counts: counts)
    decoder = chain_decoder(Task(always(ONE_HOT), horizon=3), model_drafter(always(ONE_HOT)), told, speculative)
    assert decoder.step(Tape(0), decoder.init((0,)))[0].length == (2, 2)


# Dynamic k


def ks(rule, rounds):
    """Return k after each round (share of accepted drafts, in eighths)."""
    k, found = rule.init, []
    for eighths in rounds:
        k = rule.update(k, k, k * eighths // 8)
        found.append(k)
    return found


@given(st.lists(st.integers(0, 8), max_size=30))
def test_k_stays_within_its_bounds_and_moves_by_at_most_one(rounds):
    rule = accepted_ratio()
    found = [rule.init, *ks(rule, rounds)]
    assert all(3 <= k <= 12 for k in found)
    assert all(abs(after - before) <= 1 for before, after in pairwise(found))


def test_k_climbs_to_the_maximum_when_all_is_accepted_and_falls_to_the_minimum_when_nothing_is():
    assert ks(accepted_ratio(), [8] * 8) == [7, 8, 9, 10, 11, 12, 12, 12]
    assert ks(accepted_ratio(), [0] * 5) == [5, 4, 3, 3, 3]


@pytest.mark.parametrize(("accepted", "k"), [(2, 4), (3, 5), (4, 6)])
def test_k_moves_at_the_thresholds_themselves(accepted, k):
    """Of 5 drafts, 2 are the share 0.4 and 4 the share 0.8."""
    assert accepted_ratio(start=5).update(5, 5, accepted) == k


@given(st.integers(3, 12))
def test_a_round_without_draft_leaves_k_alone(k):
    assert accepted_ratio().update(k, 0, 0) == k


@given(tasks(2, 1, 8), prompts(2), st.integers(0, 1000))
def test_each_round_plans_the_k_that_the_rounds_before_it_left(task, prompt, seed):
    decoder = dynamic_k.build(task, start=2, minimum=0, maximum=3)
    rule, k = accepted_ratio(2, 0, 3), 2
    remaining = task.horizon
    for round_ in generate(decoder, prompt, Tape(seed)).rounds:
        assert dict(round_.trace) == {"k": k}
        assert len(round_.draft) == min(k, remaining - 1)
        k = rule.update(k, len(round_.draft), round_.accepted)
        remaining -= len(round_.tokens)


# Confidence


def test_the_unlikely_token_is_kept_and_ends_the_draft():
    rule = confidence(Fraction(1, 2), 4)
    assert [rule.stop_after(pmf("1/2", "1/4", "1/4"), token) for token in range(3)] == [False, True, True]
    task = Task(always(UNIFORM), always(UNIFORM), horizon=9)
    decoder = confidence_stopping.build(task, threshold=0.5, gamma=4)
    assert [len(round_.draft) for round_ in generate(decoder, (0,), Sampled(0)).rounds[:1]] == [1]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: constant(-1), "gamma is -1, expected an integer >= 0"),
        (lambda: constant(True), "gamma is True, expected an integer >= 0"),
        (lambda: constant(2.0), "gamma is 2.0, expected an integer >= 0"),
        (lambda: confidence(1.5, 2), "threshold is 1.5, expected a probability"),
        (lambda: confidence(0.5, -1), "gamma is -1, expected an integer >= 0"),
        (lambda: entropy_adaptive(always(UNIFORM), 3, 2), "gamma_min is 3 and gamma_max is 2, expected gamma_min <="),
        (lambda: entropy_adaptive(always(UNIFORM), 1, 2, 1.0), r"beta is 1.0, expected a number in \[0, 1\)"),
        (lambda: entropy_adaptive(always(UNIFORM), -1, 2), "gamma_min is -1, expected an integer >= 0"),
        (lambda: accepted_ratio(start=2), r"start is 2, expected a length within \[3, 12\]"),
        (lambda: accepted_ratio(low=0.9), "low is 0.9 and high is 0.8, expected 0 <= low < high <= 1"),
    ],
)
def test_impossible_rules_are_refused_in_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
