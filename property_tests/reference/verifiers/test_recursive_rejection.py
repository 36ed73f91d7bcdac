"""Recursive rejection: acceptance, and candidates drawn without replacement."""

from __future__ import annotations

from hypothesis import given

from reference.drafters.tree import (
    independent,
    without_replacement,
)
from reference.verifiers import recursive_rejection as rejection
from reference.verifiers.recursive_rejection import recursive_rejection
from test_support.laws.rational import examples
from test_support.reference.multi_draft_rules import accepted, counts, pairs


@examples(20)
@given(pairs, counts)
def test_recursive_rejection_accepts_one_minus_the_product_of_distances(pair, count):
    p, q = pair
    found = accepted(p, q, count, independent, recursive_rejection)
    assert found == rejection.acceptance(p, (q,) * count)


@examples(40)
@given(pairs, counts)
def test_without_replacement_covers_small_supports(pair, count):
    p, q = pair
    if (q > 0).sum() <= count and not (p[q == 0] > 0).any():
        assert accepted(p, q, count, without_replacement, recursive_rejection) == 1
