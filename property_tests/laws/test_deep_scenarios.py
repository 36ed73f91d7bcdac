"""Scenarios with many drafts: names, and the places where rows are open."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest

from specverify.laws.certain_tables import (
    FAR,
    MANY,
    apart_after,
    certain_pair,
    is_certain,
)
from specverify.laws.deep_scenarios import (
    CROWDED,
    LONG_SCENARIOS,
    ONE_ROW_SCENARIOS,
    PAIRED,
    TRUNCATED,
    deep_scenarios,
)
from specverify.laws.scenarios import SCENARIOS

[ALL_POSSIBLE] = [scenario for scenario in ONE_ROW_SCENARIOS if scenario.shape.startswith(MANY)]


def opened(scenario):
    """Return after how many tokens the rows of a scenario leave something open."""
    return set(map(int, scenario.shape.split("_")[2:]))


@pytest.mark.parametrize("gamma", [8, 3, 16])
def test_every_two_places_of_a_round_are_open_together(gamma):
    places = {1 + round(point * gamma / 8) for point in range(9)}
    seen = {pair for scenario in deep_scenarios(gamma) for pair in combinations(sorted(opened(scenario)), 2)}
    assert seen == set(combinations(sorted(places), 2))
    assert {scenario.horizon for scenario in deep_scenarios(gamma)} == {gamma + 1}


@pytest.mark.parametrize(
    "scenario",
    [scenario for scenario in ONE_ROW_SCENARIOS if scenario != ALL_POSSIBLE],
    ids=lambda scenario: scenario.name,
)
def test_p_and_q_are_apart_where_they_are_open_and_nowhere_else(scenario):
    target, draft = certain_pair(scenario.shape, scenario.vocabulary, scenario.seed)
    (length,) = opened(scenario)
    text, little = (0,) * length, Fraction(1, 2**scenario.seed)
    p, q = target(text), draft(text)
    assert sum(p) == sum(q) == 1
    much = Fraction(1, 8) if scenario.shape.startswith(FAR) else little
    assert list(p - q)[-4:] == [-much, much, -little, little]
    assert list(p)[-2:] == [little, 2 * little]
    assert not any((p - q)[:-4])
    for row in (p, q):
        possible = row[row > 0].tolist()
        assert len(set(possible)) == len(possible) == min(scenario.vocabulary, 9)
    assert max(target((*text, 0))) == max(draft((*text, 0))) == 1


def test_tiles_leave_a_token_over_and_a_row_without_a_draft_is_open_too():
    sizes = {scenario.vocabulary for scenario in ONE_ROW_SCENARIOS}
    assert all(any(size % tile == 1 for size in sizes) for tile in (2, 3, 4, 5, 6, 8, 16, 32, 64, 128, 256))
    assert ALL_POSSIBLE.vocabulary == 64
    assert max(sizes) > 256
    [bonus] = [item for item in ONE_ROW_SCENARIOS if opened(item) == {item.horizon}]
    assert bonus.shape == apart_after(2)


def test_their_names_are_their_own():
    everything = (*SCENARIOS, *deep_scenarios(8), CROWDED, PAIRED, TRUNCATED, *LONG_SCENARIOS, *ONE_ROW_SCENARIOS)
    assert len({scenario.name for scenario in everything}) == len(everything)
    assert not any(is_certain(scenario.shape) for scenario in SCENARIOS)
