"""A token drawn from the target that is compared with the draft."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from reference import chain, overlap
from reference.verifiers.sample_and_match import sample_and_match
from reference.verifiers.speculative_sampling import speculative_sampling
from specverify.laws.model_strategies import pmf_pairs
from test_support.laws.rational import P, Q, always, as_law, first_token, law_of, pmf

pairs = st.integers(1, 5).flatmap(pmf_pairs)


def acceptance(verify, p, q):
    def program(draws):
        drafted = draws.categorical(q, ("draft", 0))
        return verify(draws, always(p), (), chain((drafted,), (q,))).accepted

    return law_of(program).get(1, 0)


@given(pairs)
def test_sample_and_match_turns_any_drafted_token_into_a_target_draw(pair):
    p, q = pair
    assert law_of(first_token(sample_and_match, p, q)) == as_law(p)


@given(pairs)
def test_sample_and_match_accepts_a_sampled_draft_less_often_than_the_coupling(pair):
    p, q = pair
    assert acceptance(sample_and_match, p, q) == (p * q).sum() <= overlap(p, q)
    assert acceptance(speculative_sampling, p, q) == overlap(p, q)


def test_sample_and_match_accepts_thirteen_fiftieths_of_the_known_pair():
    assert acceptance(sample_and_match, P, Q) == Fraction(13, 50)


def test_a_point_draft_can_be_accepted_more_often_than_a_sampled_one():
    p, q = pmf(".9", ".1"), pmf(".55", ".45")
    guess = pmf(1, 0)
    assert (acceptance(sample_and_match, p, guess), overlap(p, q)) == (Fraction(9, 10), Fraction(65, 100))
