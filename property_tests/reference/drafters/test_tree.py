"""Draft trees: siblings drawn without replacement as an exponential race."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given

from reference.drafters.tree import tree_drafter, without_replacement
from test_support.laws.rational import always, examples, law_of
from test_support.reference.multi_draft_rules import (
    counts,
    pairs,
)

F = Fraction


@examples(20)
@given(pairs, counts)
def test_an_exponential_race_draws_siblings_as_one_after_the_other(pair, count):
    """The race's law of ordered winners (Plackett and Luce) against the drafter's."""
    _, q = pair
    drafter = tree_drafter(always(q), (-1,) * count, without_replacement)
    law = law_of(lambda draws: drafter.propose(draws, None, (0,), 9, None).tokens)
    for tokens, mass in law.items():
        product, left = F(1), F(1)
        for token in tokens:
            product, left = product * q[token] / left, left - q[token]
        assert mass == product
        assert len(tokens) == min(count, (q > 0).sum())
