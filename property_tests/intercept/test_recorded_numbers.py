"""The intervals of the uniforms behind recorded numbers of libraries."""

import numpy as np
import pytest

from specverify.intercept.recorded_numbers import _trials


@pytest.mark.parametrize("p", [0.125, 0.5, 1.0])
def test_geometric_numbers_divide_the_uniforms_by_their_probabilities(p):
    numbers = np.arange(1, 6) if p < 1 else np.ones(1)
    cells = [(item.low, item.high) for item in _trials(numbers, p)]
    assert cells[0] == pytest.approx((1 - p, 1.0))
    assert [high - low for low, high in cells] == pytest.approx([p * (1 - p) ** (n - 1) for n in numbers])
