"""The coupling of p and q in exact arithmetic: one-step laws, optimality, bounds, and its numbers on a known pair."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import Sampled, accept_probability, flip, overlap, residual, total_variation
from reference.coupling import positive_part
from specverify.laws.model_strategies import pmf_pairs, pmfs
from test_support.laws.rational import P, Q, pmf

pairs = st.integers(1, 5).flatmap(pmf_pairs)
EPSILON = sys.float_info.epsilon


def accept_vector(p, q):
    return pmf(*(accept_probability(p, q, token) for token in range(len(p))))


# The pieces, for every pair


@given(pairs)
def test_accepted_and_replaced_mass_sum_to_one(pair):
    p, q = pair
    assert np.minimum(p, q).sum() + positive_part(p - q).sum() == 1


@given(pairs)
def test_overlap_is_the_sum_of_minima_and_one_minus_total_variation(pair):
    p, q = pair
    assert overlap(p, q) == np.minimum(p, q).sum() == 1 - total_variation(p, q)


@given(pairs)
def test_total_variation_is_half_the_absolute_difference_and_symmetric(pair):
    p, q = pair
    assert total_variation(p, q) == abs(p - q).sum() / 2 == total_variation(q, p)


@given(pairs)
def test_accept_probability_is_the_clipped_ratio(pair):
    p, q = pair
    for token in range(len(p)):
        ratio = min(Fraction(1), p[token] / q[token]) if q[token] else Fraction(p[token] > 0)
        assert accept_probability(p, q, token) == ratio


@given(pairs)
def test_accept_probability_is_zero_exactly_where_the_target_is(pair):
    p, q = pair
    values = accept_vector(p, q)
    assert [value == 0 for value in values] == [mass == 0 for mass in p]
    assert all(0 <= value <= 1 for value in values)


@given(pairs)
def test_the_residual_is_a_pmf_that_supports_only_what_the_draft_left_short(pair):
    p, q = pair
    replaced = residual(p, q)
    assert replaced.sum() == 1
    if total_variation(p, q) > 0:
        assert [mass > 0 for mass in replaced] == [mass > proposed for mass, proposed in zip(p, q, strict=True)]


@given(st.integers(1, 5).flatmap(pmfs))
def test_equal_pmfs_leave_the_target_as_residual_and_always_accept(p):
    assert residual(p, p).tolist() == p.tolist()
    assert overlap(p, p) == 1


@given(pairs.filter(lambda pair: not any(pair[0] * pair[1])))
def test_disjoint_supports_never_accept_and_leave_the_whole_target(pair):
    p, q = pair
    assert overlap(p, q) == 0
    assert residual(p, q).tolist() == p.tolist()


@given(pairs)
def test_the_pieces_change_none_of_their_inputs(pair):
    p, q = pair
    before = p.tolist(), q.tolist()
    residual(p, q), overlap(p, q), total_variation(p, q), accept_vector(p, q)
    assert (p.tolist(), q.tolist()) == before


# One step


@given(pairs)
def test_the_one_step_law_in_closed_form_is_the_target(pair):
    p, q = pair
    accepted = q * accept_vector(p, q)
    assert (accepted + (1 - accepted.sum()) * residual(p, q)).tolist() == p.tolist()


@given(pairs, st.data())
def test_no_lossless_rule_accepts_more_often(pair, data):
    """Accepted mass m = q a of a lossless rule obeys m <= p and m <= q; every such m is min(p, s q) for some s."""
    p, q = pair
    shares = [data.draw(st.fractions(0, 1, max_denominator=6), label="share") for _ in p]
    accepted = [min(mass, share * proposed) for mass, share, proposed in zip(p, shares, q, strict=True)]
    assert sum(accepted) <= overlap(p, q)


@given(pairs, st.data())
def test_acceptance_beyond_the_overlap_is_paid_for_in_total_variation(pair, data):
    """For any accept vector a and any fallback f: TV(law, p) >= P(out = d) - alpha."""
    p, q = pair
    accept = pmf(*(data.draw(st.fractions(0, 1, max_denominator=6), label="accept") for _ in p))
    fallback = data.draw(pmfs(len(p)), label="fallback")
    law = q * accept + (1 - (q * accept).sum()) * fallback
    kept = (q * (accept + (1 - accept) * fallback)).sum()
    assert total_variation(law, p) >= kept - overlap(p, q)


# Float64 and bounds


@given(pairs)
def test_float64_agrees_with_fractions_within_a_few_epsilon(pair):
    """Roundings of size epsilon/2: two conversions and a quotient; or V conversions, differences and additions.

    A residual is divided by its mass, so its absolute error is bounded after weighting by that mass.
    """
    p, q = pair
    x, y = p.astype(np.float64), q.astype(np.float64)
    bound = (len(p) + 5) * EPSILON
    for token in range(len(p)):
        assert abs(accept_probability(x, y, token) - float(accept_probability(p, q, token))) <= 2 * EPSILON
    assert abs(total_variation(x, y) - float(total_variation(p, q))) <= bound
    assert abs(overlap(x, y) - float(overlap(p, q))) <= bound
    weighted = float(total_variation(p, q)) * abs(residual(x, y) - residual(p, q).astype(np.float64))
    assert weighted.max() <= bound


def test_a_residual_lost_to_rounding_is_the_target():
    """Two float kernels can leave p below q everywhere; the replacement is then p, neither q nor NaN."""
    p, q = np.array([0.3, np.nextafter(0.7, 0)]), np.array([0.3, 0.7])
    assert total_variation(p, q) == 0
    assert residual(p, q).tolist() == p.tolist() != q.tolist()


def divergence(p, q):
    terms = [(float(a), float(b)) for a, b in zip(p, q, strict=True) if a > 0]
    return math.inf if any(b == 0 for _, b in terms) else math.fsum(a * math.log(a / b) for a, b in terms)


@given(pairs)
def test_acceptance_obeys_pinsker_and_bretagnolle_huber_in_both_directions(pair):
    p, q = pair
    for kl in (max(divergence(p, q), 0.0), max(divergence(q, p), 0.0)):
        alpha = float(overlap(p, q)) + 1e-12
        assert alpha >= 1 - math.sqrt(kl / 2)
        assert alpha >= 1 - math.sqrt(1 - math.exp(-kl)) >= math.exp(-kl) / 2


@pytest.mark.parametrize(("p", "q"), [((".9", ".1"), (".5", ".5")), ((".55", ".45"), (".5", ".5"))])
def test_the_reciprocal_of_one_plus_divergence_is_no_lower_bound(p, q):
    p, q = pmf(*p), pmf(*q)
    assert float(overlap(p, q)) < 1 / (1 + divergence(p, q))


# The known pair, p = (1/5, 3/10, 1/2) and q = (3/5, 3/10, 1/10)


def test_the_known_pair_has_its_distance_overlap_and_residual():
    assert (total_variation(P, Q), overlap(P, Q)) == (Fraction(2, 5), Fraction(3, 5))
    assert residual(P, Q).tolist() == [0, 0, 1]


def test_the_coupling_beats_classical_rejection_sampling_on_the_known_pair():
    """Rejection sampling needs p <= M q and accepts 1 in M."""
    assert 1 / max(P / Q) == Fraction(1, 5) < overlap(P, Q)


@pytest.mark.parametrize("function", [overlap, residual, total_variation])
def test_pmfs_of_different_lengths_are_refused_in_one_sentence(function):
    with pytest.raises(ValueError, match="p has 3 tokens, q has 2; expected one size"):
        function(P, pmf("1/2", "1/2"))


def test_a_coin_whose_probability_was_rounded_above_one_lands_heads():
    assert flip(Sampled(0), 1 + 2.0**-52, ("coin",))
    with pytest.raises(ValueError, match="sums to"):
        flip(Sampled(0), 1.001, ("coin",))


class Asked:
    """Keeps the pmfs it was asked with, and answers 0."""

    def __init__(self):
        """``pmfs`` grows with every draw."""
        self.pmfs = []

    def categorical(self, pmf, *_):
        """Return the first outcome."""
        self.pmfs.append(pmf)
        return 0


@pytest.mark.parametrize(
    ("probability", "dtype"),
    [
        (0.25, np.float64),
        (np.float64(0.25), np.float64),
        (np.float32(0.25), np.float64),
        (np.array(0.25, dtype=np.float16), np.float64),
        (Fraction(1, 4), object),
        (1, object),
        (0, object),
    ],
    ids=repr,
)
def test_a_coin_of_floats_is_float64_and_one_of_rationals_stays_exact(probability, dtype):
    draws = Asked()
    assert flip(draws, probability, ("coin",))
    assert draws.pmfs[0].dtype == dtype
    assert draws.pmfs[0].tolist() == [probability, 1 - probability]
