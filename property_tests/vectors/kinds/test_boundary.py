"""Numbers of a boundary vector are exact in float32."""

from __future__ import annotations

from fractions import Fraction

import pytest

from specverify.vectors.all_vectors import all_vectors
from specverify.vectors.kinds import boundary

pytestmark = pytest.mark.xdist_group("vectors")


def numbers_in(value):
    """Yield every number that stands in a value as a string."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from numbers_in(item)
    elif isinstance(value, str) and value[:1].isdigit():
        yield Fraction(value)


def test_every_number_of_a_boundary_is_held_by_float32():
    for vector in [vector for vector in all_vectors().values() if vector.kind == boundary.KIND]:
        if vector.id.endswith("-equal") and "largest-final" in vector.id:
            continue  # equal parts, of which the sums are rounded
        for mass in numbers_in([vector.inputs["p"], vector.inputs["q"]]):
            significand = mass.numerator
            while significand and significand % 2 == 0:
                significand //= 2
            assert significand < 2**24
            assert mass.denominator & (mass.denominator - 1) == 0
