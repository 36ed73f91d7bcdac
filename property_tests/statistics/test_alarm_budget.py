"""The alarm budget is never exceeded."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specverify.statistics import (
    divide_alarm,
)
from test_support.statistics.statistical import (
    exhaustive,
)


@exhaustive
@given(st.floats(1e-12, 0.5), st.integers(1, 10**6))
def test_the_alarm_budget_is_never_exceeded(total, parts):
    budget = divide_alarm(total, parts)
    assert (budget.total, budget.parts) == (total, parts)
    assert budget.each * parts == pytest.approx(total, rel=1e-12)
    # The union bound holds for dependent tests; for independent ones the run's false alarm is below it.
    assert -math.expm1(parts * math.log1p(-budget.each)) <= total * (1 + 1e-9)
