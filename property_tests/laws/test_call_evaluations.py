"""One call evaluated in the dtypes of its program."""

from __future__ import annotations

import numpy as np
import pytest

from property_tests.laws.test_call_rule import in_floats, rows
from specverify.laws.call_evaluations import evaluated_behind, evaluated_kept, rounded

SIZE, GAMMA = 3000, 3


def test_rounding_to_16_bits_is_to_the_nearest_and_to_even():
    assert rounded("bfloat16")(1 + 2**-8) == 1.0
    assert rounded("bfloat16")(1 + 3 * 2**-8) == 1 + 2**-6
    assert rounded("bfloat16")(1 + 2**-8 + 2**-20) == 1 + 2**-7
    assert rounded("float16")(1 + 2**-11) == 1.0
    assert rounded("float16")(2**-26) == 0.0


@pytest.mark.parametrize("scaled", [False, True])
def test_a_program_in_float16_is_one_of_the_evaluations(scaled):
    given = rows(1, store=lambda row: row.astype(np.float16).astype(np.float64))
    for position in range(GAMMA + 1):
        ratio, law = in_floats(given, position, np.float16, scaled=scaled, one_after_another=False)
        assert any(np.abs(way - law).sum() < 1e-5 for way in evaluated_behind(given, position, "float16"))
        assert ratio is None or any(abs(way - ratio) < 1e-9 for way in evaluated_kept(given, position, "float16"))
        assert not any(np.abs(way - law[::-1]).sum() < 1e-2 for way in evaluated_behind(given, position, "float16"))
