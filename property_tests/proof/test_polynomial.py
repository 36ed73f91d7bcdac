"""Polynomials: division, and the primitive part."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("z3", reason='proofs need z3: pip install "specverify-suite[proof]"')

from specverify.proof.polynomial import Polynomial, common_monomial, primitive, quotient

polynomials = st.dictionaries(
    st.lists(st.integers(0, 3), max_size=3).map(lambda numbers: tuple(sorted(numbers))),
    st.fractions(-3, 3, max_denominator=4).filter(bool),
    max_size=4,
).map(Polynomial)


@given(polynomials, polynomials.filter(bool), polynomials)
def test_division_finds_factors_and_nothing_else(one, other, third):
    assert quotient(one * other, other) == one
    divided = quotient(third, other)
    assert divided is None or divided * other == third


@given(polynomials.filter(bool))
def test_the_primitive_part_has_coprime_integers_and_a_positive_leading_coefficient(polynomial):
    content, rest = primitive(polynomial)
    assert rest.times(content) == polynomial
    assert rest.terms[rest.leading] > 0
    assert primitive(rest) == (1, rest)
    shared = Polynomial({common_monomial(polynomial): 1})
    assert quotient(polynomial, shared) is not None
