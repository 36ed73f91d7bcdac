"""Tables that are certain but for a few rows, and the scenarios of many drafts that are made of them."""

from __future__ import annotations

from reference import greedy_law
from specverify.laws.certain_tables import (
    CERTAIN,
    MANY,
    certain_pair,
    open_after,
    periodic_after,
)
from specverify.laws.deep_scenarios import LONG_SCENARIOS, ONE_ROW_SCENARIOS
from specverify.laws.law import target_law
from specverify.laws.scenarios import scenario_task

[ALL_POSSIBLE] = [scenario for scenario in ONE_ROW_SCENARIOS if scenario.shape.startswith(MANY)]


def test_rows_are_certain_and_agree_but_for_those_that_are_open():
    target, draft = certain_pair(open_after(2), 3, seed=0)
    for tokens in [(0,), (1,), (0, 1, 2), (2, 2, 2, 2)]:
        assert sorted(target(tokens)) == [0, 0, 1]
        assert (target(tokens) == draft(tokens)).all()
    assert all(min(model(tokens)) > 0 for model in (target, draft) for tokens in [(0, 1), (2, 2)])


def test_a_quarter_of_certain_rows_part():
    target, draft = certain_pair(CERTAIN, 5, seed=0)
    parted = [(target((a, b, c)) != draft((a, b, c))).any() for a in range(5) for b in range(5) for c in range(5)]
    assert 0.15 < sum(parted) / len(parted) < 0.35


def test_a_certain_text_has_one_law_and_greedy_decoding_finds_it():
    certain = next(scenario for scenario in LONG_SCENARIOS if scenario.shape == CERTAIN)
    law = target_law(scenario_task(certain), certain.prompt)
    assert law == greedy_law(scenario_task(certain), certain.prompt)
    assert len(law) == 1


def test_a_text_comes_back_to_its_period_behind_what_is_open():
    target, draft = certain_pair(periodic_after(4), 3, seed=0)
    assert all((target((0, 1, 2, 0)) > 0) & (draft((0, 1, 2, 0)) > 0))
    for text in ((0, 1), (0, 1, 2, 0, 0), (0, 1, 2, 0, 2)):
        assert target(text)[len(text) % 3] == draft(text)[len(text) % 3] == 1


def test_every_token_is_possible_behind_one_draft():
    target, draft = certain_pair(ALL_POSSIBLE.shape, 64, ALL_POSSIBLE.seed)
    p, q = target((0,)), draft((0,))
    assert len(set(p)) == 64
    assert all(p)
    assert sorted(q)[-2:] == [0, 1]
    assert max(target((0, 1))) == max(draft((0, 1))) == 1
