"""From logits to pmfs: conventions at ties and equalities, exactness, order of processing, refusals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import (
    Task,
    argmax,
    min_p,
    one_hot,
    repetition_penalty,
    softmax,
    speculative_generate,
    top_k,
    top_p,
    top_tokens,
    warped,
)
from reference.algorithms import speculative_sampling
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import rounding_bound, target_law, total_variation
from specverify.laws.model_strategies import pmfs
from specverify.laws.rounding import FLOAT64
from test_support.laws.rational import pmf

rows = st.integers(1, 6).flatmap(pmfs)
shares = st.fractions(0, 1, max_denominator=8)
masses = shares.filter(bool)
counts = st.integers(1, 7)
integer_logits = st.lists(st.integers(-20, 20), min_size=1, max_size=6).map(lambda values: np.array(values, np.float64))


def kept(row):
    return {token for token, mass in enumerate(row.tolist()) if mass > 0}


def test_temperature_zero_is_the_first_largest_logit():
    assert softmax(np.array([1.0, 3.0, 3.0]), 0).tolist() == [0, 1, 0]


@given(integer_logits)
def test_temperature_zero_is_the_point_mass_on_the_argmax(logits):
    assert softmax(logits, 0).tolist() == one_hot(argmax(logits), logits).tolist()


@given(integer_logits.filter(lambda logits: (logits == logits.max()).sum() == 1))
def test_low_temperatures_tend_to_temperature_zero(logits):
    """Integer logits differ by at least 1, and exp(-1/0.001) is 0 in float64."""
    assert softmax(logits, 1e-3).tolist() == softmax(logits, 0).tolist()


@given(integer_logits, st.sampled_from((0.5, 1.0, 2.0)))
def test_softmax_depends_on_differences_of_logits_alone(logits, temperature):
    expected = softmax(logits, temperature)
    assert softmax(logits + 64, temperature).tolist() == expected.tolist()
    assert abs(expected.sum() - 1) < 1e-15 * len(logits)


def test_minus_infinity_forbids_a_token():
    assert softmax(np.array([0.0, -np.inf, 0.0])).tolist() == [0.5, 0, 0.5]


# Truncations


def test_top_k_keeps_every_token_tied_with_the_last():
    assert kept(top_k(softmax(np.array([2.0, 1.0, 1.0, 0.0])), 2)) == {0, 1, 2}


def test_top_p_keeps_nothing_more_at_equality():
    assert top_p(np.array([0.5, 0.25, 0.25]), 0.5).tolist() == [1, 0, 0]
    assert top_p(pmf("1/2", "1/4", "1/4"), Fraction(1, 2)).tolist() == [1, 0, 0]


def test_top_p_takes_the_lower_id_of_a_tie_first():
    assert top_p(pmf("1/4", "1/2", "1/4"), Fraction(3, 4)).tolist() == [Fraction(1, 3), Fraction(2, 3), 0]


def test_min_p_compares_with_the_most_probable_token():
    assert kept(min_p(pmf("1/2", "1/4", "3/16", "1/16"), Fraction(1, 2))) == {0, 1}


TRUNCATIONS = {
    "top_k": st.builds(lambda k: lambda row: top_k(row, k), counts),
    "top_p": st.builds(lambda mass: lambda row: top_p(row, mass), masses),
    "min_p": st.builds(lambda ratio: lambda row: min_p(row, ratio), shares),
}
truncations = st.one_of(*TRUNCATIONS.values())


@given(rows, truncations)
def test_a_truncation_is_the_pmf_conditioned_on_the_tokens_it_keeps(row, truncate):
    truncated = truncate(row)
    tokens = kept(truncated)
    mass = sum(row[token] for token in tokens)
    assert truncated.tolist() == [row[token] / mass if token in tokens else 0 for token in range(len(row))]
    assert argmax(row) in tokens


@given(rows, truncations)
def test_a_truncation_keeps_no_token_less_probable_than_one_it_drops(row, truncate):
    tokens = kept(truncate(row))
    dropped = set(range(len(row))) - tokens
    assert all(row[token] <= min(row[other] for other in tokens) for token in dropped)


@given(rows, truncations)
def test_rational_pmfs_stay_rational(row, truncate):
    truncated = truncate(row)
    assert truncated.dtype == object
    assert {type(value) for value in truncated} == {Fraction}


@given(rows, truncations)
def test_no_truncation_changes_its_input(row, truncate):
    before = row.tolist()
    truncate(row)
    assert row.tolist() == before


@pytest.mark.parametrize("name", ["top_k", "min_p"])
@given(st.data())
def test_truncating_by_rank_or_ratio_twice_changes_nothing(name, data):
    row, truncate = data.draw(rows), data.draw(TRUNCATIONS[name])
    once = truncate(row)
    assert truncate(once).tolist() == once.tolist()


@given(rows, masses)
def test_top_p_keeps_the_smallest_set_that_holds_the_mass(row, mass):
    tokens = kept(top_p(row, mass))
    held = [row[token] for token in tokens]
    assert sum(held) >= mass
    assert sum(held) - min(held) < mass


@given(rows, counts, counts)
def test_a_larger_k_keeps_more(row, one, other):
    small, large = sorted((one, other))
    assert kept(top_k(row, small)) <= kept(top_k(row, large))


@given(rows, masses, masses)
def test_a_larger_mass_keeps_more(row, one, other):
    small, large = sorted((one, other))
    assert kept(top_p(row, small)) <= kept(top_p(row, large))


@given(rows, shares, shares)
def test_a_larger_ratio_keeps_less(row, one, other):
    small, large = sorted((one, other))
    assert kept(min_p(row, large)) <= kept(min_p(row, small))


@given(rows)
def test_the_loosest_truncations_change_nothing(row):
    loose = [top_k(row, len(row)), top_k(row, len(row) + 5), top_p(row, 1), min_p(row, 0)]
    assert [truncated.tolist() for truncated in loose] == [row.tolist()] * 4


@given(rows, counts)
def test_top_tokens_are_distinct_possible_and_in_order(row, count):
    found = top_tokens(row, count)
    assert set(found) <= kept(row)
    assert len(found) == min(count, len(kept(row)))
    assert list(found) == sorted(found, key=lambda token: (-row[token], token))
    assert found[0] == argmax(row)


# Repetition penalty and the whole pipeline


def test_a_penalty_divides_positive_and_multiplies_negative_logits():
    logits = np.array([2.0, -2.0, 0.0, 2.0])
    assert repetition_penalty(logits, (0, 1, 2, 0), 4.0).tolist() == [0.5, -8, 0, 2]


def test_no_logit_processing_changes_the_logits():
    logits = np.array([2.0, -1.0, 0.5, 2.0])
    model = warped(lambda tokens: logits, temperature=0.7, top_k=3, top_p=0.9, min_p=0.1, repetition_penalty=1.3)
    model((0, 1)), softmax(logits, 0), softmax(logits, 2.0), repetition_penalty(logits, (0, 1), 1.5)
    assert logits.tolist() == [2, -1, 0.5, 2]


@pytest.mark.parametrize("history", [(0,), (0, 1), (0, 1, 1, 2)])
def test_each_position_is_penalised_for_its_own_history(history):
    logits = np.array([1.0, 0.5, -0.5, 0.25])
    model = warped(lambda tokens: logits, repetition_penalty=1.5)
    seen = [token in history for token in range(4)]
    moved = [(value / 1.5 if value > 0 else value * 1.5) if hit else value for value, hit in zip(logits, seen)]  # noqa: B905
    assert model(history).tolist() == softmax(np.array(moved)).tolist()


def test_a_penalised_target_is_decoded_without_loss():
    """History-dependent rows inside a block: the law is still the target's, up to the rounding of float64."""
    target = warped(lambda tokens: np.array([1.0, 0.5, -0.5]), repetition_penalty=2.0)
    draft = warped(lambda tokens: np.array([0.0, 1.0, -1.0]), top_k=2)
    task = Task(target, draft, horizon=3)
    law = decoder_law(speculative_sampling.build(task, gamma=2), (0,))
    assert total_variation(law, target_law(task, (0,))).high <= rounding_bound(law, FLOAT64)


def test_temperature_comes_before_the_nucleus():
    logits = np.log(np.array([0.5, 0.3, 0.2]))
    found = warped(lambda tokens: logits, temperature=2.0, top_p=0.75)(())
    assert found == pytest.approx([0.4154, 0.3218, 0.2628], abs=5e-5)


def test_the_nucleus_before_the_temperature_is_another_target():
    nucleus = top_p(np.array([0.5, 0.3, 0.2]), 0.75)
    found = softmax(np.log(np.where(nucleus > 0, nucleus, 1)) - np.where(nucleus > 0, 0, np.inf), 2.0)
    assert found == pytest.approx([0.5635, 0.4365, 0], abs=5e-5)


def test_each_truncation_sees_the_renormalised_result_of_the_one_before():
    """Top-k leaves (5/8, 3/8); a nucleus of 0.6 holds its first token alone, while of (1/2, 3/10, 1/5) it needs two."""
    logits = np.log(np.array([0.5, 0.3, 0.2]))
    assert warped(lambda tokens: logits, top_k=2, top_p=0.6)(()).tolist() == [1, 0, 0]
    assert kept(warped(lambda tokens: logits, top_p=0.6)(())) == {0, 1}


def test_a_warped_model_at_temperature_zero_decodes_greedily():
    model = warped(lambda tokens: np.array([0.0, 1.0, 1.0]), temperature=0)
    assert speculative_generate(model, model, (0,), max_new_tokens=5, seed=3).tokens == (1,) * 5


# Refusals

LOGITS = np.array([0.0, 1.0])
ROW = np.array([0.5, 0.5])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: softmax(LOGITS, -1.0), "temperature is -1.0, expected a number >= 0"),
        (lambda: softmax(LOGITS, float("nan")), "temperature is nan, expected a number >= 0"),
        (lambda: softmax(np.array([0.0, np.nan])), "largest logit is nan, expected at least one finite logit"),
        (lambda: softmax(np.array([-np.inf, -np.inf])), "largest logit is -inf, expected at least one finite logit"),
        (lambda: softmax(np.array([0.0, np.inf])), "largest logit is inf, expected at least one finite logit"),
        (lambda: top_k(ROW, 0), "top_k is 0, expected at least 1"),
        (lambda: top_p(ROW, 0), r"top_p is 0, expected a number in \(0, 1\]"),
        (lambda: top_p(ROW, 1.5), r"top_p is 1.5, expected a number in \(0, 1\]"),
        (lambda: min_p(ROW, -0.1), r"min_p is -0.1, expected a number in \[0, 1\]"),
        (lambda: min_p(ROW, 1.1), r"min_p is 1.1, expected a number in \[0, 1\]"),
        (lambda: repetition_penalty(LOGITS, (), 0), "repetition_penalty is 0, expected a positive number"),
        (lambda: warped(lambda tokens: LOGITS, top_k=0)(()), "top_k is 0, expected at least 1"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
