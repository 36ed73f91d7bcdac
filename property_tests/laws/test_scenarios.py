"""Scenarios are found by their names."""

from __future__ import annotations

import numpy as np

from specverify.laws.scenarios import (
    LONG_SCENARIOS,
    ROUNDING_SCENARIOS,
    SCENARIOS,
    scenario_named,
    scenario_task,
)


def test_long_scenarios_are_found_by_their_names():
    assert [scenario_named(item.name) for item in LONG_SCENARIOS] == list(LONG_SCENARIOS)


def test_scenarios_of_rounded_rows_are_found_by_their_names_and_only_the_checks_of_calls_go_through_them():
    assert len({scenario.name for scenario in (*SCENARIOS, *ROUNDING_SCENARIOS)}) == len(SCENARIOS) + len(
        ROUNDING_SCENARIOS
    )
    for scenario in ROUNDING_SCENARIOS:
        assert scenario_named(scenario.name) == scenario
        assert scenario_task(scenario).target((0,)).dtype == (np.float32 if scenario.float32 else np.float64)
        assert scenario not in SCENARIOS
