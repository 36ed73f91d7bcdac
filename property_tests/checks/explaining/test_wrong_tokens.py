"""The draw from which the first wrong token of an engine comes."""

from __future__ import annotations

import pytest

from specverify.checks.explaining.engine_counterexamples import _fault_of
from specverify.checks.explaining.engine_paths import KeptPaths
from specverify.checks.explaining.engine_rounds import EngineRounds
from specverify.checks.explaining.first_difference import NOT_EXCLUDED, Difference
from specverify.checks.explaining.wrong_tokens import draft_of_other_text
from specverify.subjects.subject import Trace
from test_support.checks.recorded_rounds import P, model, token

Q = {(0, 0): (0.9, 0.1), (0, 1): (0.6, 0.4)}
WRONG = Difference("", (), (1,), {0: 0.9, 1: 0.1}, {0: 0.5, 1: 0.5})
AHEAD = Trace((((0,), (1, 0)),), (("draft", (0, 0)), ("draft", (0, 1))), model(Q), model(P))


def test_a_draft_that_was_drawn_ahead_for_another_text_is_named():
    said = "new token 2 is a draft that is drawn from q after (0 0) (e.py:1), but it follows (0 1)"
    assert draft_of_other_text(WRONG, AHEAD, [token(0, 0.9, 0.1)]) == said


@pytest.mark.parametrize(
    ("draws", "trace"),
    [
        ([token(0, 0.6, 0.4)], AHEAD),
        ([token(0, 0.9, 0.1), token(0, 0.9, 0.1)], AHEAD),
        ([token(0, 0.9, 0.1)], AHEAD._replace(queries=(("draft", (0, 1)), ("target", (0, 0))))),
        ([token(0, 0.9, 0.1)], AHEAD._replace(texts=(((0,), (0, 0)),))),
        ([token(0, 0.9, 0.1)], AHEAD._replace(draft=None)),
    ],
    ids=["its own row", "two draws", "not queried", "another path", "unknown draft model"],
)
def test_a_draw_that_may_be_right_or_is_not_that_of_the_token_is_not_named(draws, trace):
    assert draft_of_other_text(WRONG, trace, draws) == ""


def test_a_token_that_is_certain_needs_no_draw():
    assert draft_of_other_text(WRONG._replace(expected={1: 1.0}), AHEAD, [token(0, 0.9, 0.1)]) == ""


@pytest.mark.parametrize(("sentence", "said"), [("", "numbers"), (NOT_EXCLUDED, "")])
def test_the_law_of_a_token_that_no_mask_excludes_says_more_than_numbers_of_rounds(sentence, said):
    rounds = EngineRounds([], "numbers")
    difference = WRONG._replace(sentence=f"new token 2 is 0 with probability 0.9, expected 0{sentence}")
    assert _fault_of(rounds, KeptPaths(lambda draws: 0), [], (model(P), 2), {}, difference) == said
    assert _fault_of(rounds._replace(named=True), KeptPaths(lambda draws: 0), [], (model(P), 2), {}, difference) == (
        "numbers"
    )
