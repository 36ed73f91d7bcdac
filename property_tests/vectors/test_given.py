"""Uniforms of vectors are exact in float32."""

from __future__ import annotations

import pytest

from property_tests.vectors.kinds.test_boundary import numbers_in
from specverify.vectors.all_vectors import all_vectors
from specverify.vectors.given import FINEST

pytestmark = pytest.mark.xdist_group("vectors")


def test_uniforms_are_held_by_float32():
    for vector in all_vectors().values():
        for name in ("coins", "final", "uniforms"):
            for uniform in numbers_in(vector.inputs.get(name, [])):
                assert 0 <= uniform < 1
                assert 2**FINEST % uniform.denominator == 0
