"""Speculative sampling of one drafted token: its law, and the law of an accepted token."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from reference import chain
from reference.verifiers.speculative_sampling import speculative_sampling
from specverify.laws.model_strategies import pmf_pairs
from test_support.laws.rational import P, Q, always, as_law, first_token, law_of

pairs = st.integers(1, 5).flatmap(pmf_pairs)


@given(pairs)
def test_the_verifier_turns_a_drafted_token_into_a_target_draw(pair):
    p, q = pair
    assert law_of(first_token(speculative_sampling, p, q)) == as_law(p)


def test_the_law_of_an_accepted_token_is_the_normalised_minimum():
    def program(draws):
        drafted = draws.categorical(Q, ("draft", 0))
        verified = speculative_sampling(draws, always(P), (), chain((drafted,), (Q,)))
        return verified.accepted, verified.tokens[0]

    accepted = {token: mass for (count, token), mass in law_of(program).items() if count == 1}
    alpha = sum(accepted.values())
    assert alpha == Fraction(3, 5)
    assert [accepted[token] / alpha for token in range(3)] == [Fraction(1, 3), Fraction(1, 2), Fraction(1, 6)]
