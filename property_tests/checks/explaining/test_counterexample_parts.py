"""Lines about the rounds of a path: they have the numbers of rounds only where draws show the rounds."""

from __future__ import annotations

from specverify.checks.explaining.counterexample_parts import words_of_rounds
from specverify.checks.explaining.readings import Models
from specverify.checks.explaining.round_readings import reading_of
from test_support.checks.recorded_rounds import coin, model, read, token

CERTAIN = {(0,): (0.0, 1.0), (0, 1): (1.0, 0.0), (0, 1, 0): (0.5, 0.5), (0, 1, 0, 0): (0.0, 1.0)}
Q = {(0, 1, 0): (0.2, 0.8)}


def lines(items, new, p, q):
    return words_of_rounds(reading_of(items, Models(model(p), model(q), (0,), len(new)), new)).splitlines()


def test_certain_tokens_in_front_of_a_round_share_a_line():
    items = [token(1, 0.2, 0.8), coin(0.625, 1.0)]
    assert lines(items, (1, 0, 0, 1), CERTAIN, Q) == [
        "new tokens 1 to 2: 1 0 (p = 1)",
        "from new token 3 on: drafted 1 (q = 0.8, e.py:1), rejected (u >= 0.625, e.py:2), replaced by 0",
        "new token 4: 1 (p = 1)",
    ]


def test_a_token_that_is_drawn_without_a_draft_has_a_line_of_its_own():
    items = [token(0, 0.5, 0.5), token(1, 0.5, 0.5)]
    p = {(0,): (0.5, 0.5), (0, 0): (0.5, 0.5), (0, 0, 1): (0.0, 1.0)}
    assert lines(items, (0, 1, 1), p, {(0,): (0.0, 1.0), (0, 0): (0.0, 1.0)}) == [
        "new token 1: 0 (p = 0.5, e.py:1)",
        "new token 2: 1 (p = 0.5, e.py:1)",
        "new token 3: 1 (p = 1)",
    ]


def test_rounds_with_drafts_are_numbered():
    reading = read([token(1, 0.2, 0.8), coin(0.625, 1.0), token(0, 0.5, 0.5), coin(0.0, 0.5)], (0, 0))
    assert words_of_rounds(reading).splitlines() == [f"round {i}: {said}" for i, said in enumerate(reading.words, 1)]
