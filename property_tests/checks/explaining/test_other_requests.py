"""Wrong requests of a batch: the draw that decides the wrong token, and the rows and texts that are shown."""

from __future__ import annotations

import random
from contextlib import nullcontext

import numpy as np

from specverify.checks import Conditions, check_named
from specverify.checks.explaining.counterexample_parts import BeyondOutcome
from specverify.checks.explaining.engine_paths import KeptPaths
from specverify.checks.explaining.first_difference import Difference
from specverify.checks.explaining.other_requests import (
    _decided_by,
    _shared_draw,
    _wrong_draw,
    rows_of_request,
    then_of_request,
)
from specverify.subjects.engine_making import Made
from specverify.subjects.made_engine import made_subject
from specverify.subjects.subject import EngineProgram, Trace
from test_support.checks.recorded_rounds import token

WRONG = Difference("row 2, it differs", (), request=1, wrong=(0, 1))
HALVES = EngineProgram(
    "it", lambda: nullcontext(None), dict, split=lambda new: (new[: len(new) // 2], new[len(new) // 2 :]), each="row"
)


def accepts_all(draws):
    """Return the new tokens of two rows; the draft of row 2 is accepted in any case."""
    return 0, 0, 0, draws.categorical([0.25, 0.75], ("random.choices", "e.py:1"))


def test_a_draft_that_is_surely_accepted_is_named_with_its_line():
    p, q = np.array([0.75, 0.25]), np.array([0.25, 0.75])
    trace = Trace((((0,), (0, 0)), ((1,), (0, 1))), (), lambda text: q, lambda text: p)
    said = _decided_by(HALVES, trace, KeptPaths(accepts_all), WRONG)
    assert said.startswith("; the draft, token 1 from q (e.py:1), is surely accepted on some paths, expected with pr")
    right = trace._replace(target=lambda text: q)
    assert _decided_by(HALVES, right, KeptPaths(accepts_all), WRONG) == ""


def decided_by_coin(bound):
    """Return a program of two rows: a test with probability ``bound`` decides the last token of row 2."""
    return lambda draws: (0, 0, 0, 1 - draws.categorical([bound, 1 - bound], ("random.random", "e.py:2", "below", 1)))


def test_a_right_test_of_another_row_is_not_told_as_a_wrong_test():
    rows = {0: (np.array([0.3, 0.7]), np.array([0.5, 0.5])), 1: (np.array([0.75, 0.25]), np.array([0.25, 0.75]))}
    trace = Trace((((0,), (0, 0)), ((1,), (0, 1))), (), lambda text: rows[text[0]][1], lambda text: rows[text[0]][0])
    wrong = "; new token 2 is 1 if u < 0.5 (e.py:2), and min(1, p/q) is 0.333 there"
    assert _decided_by(HALVES, trace, KeptPaths(decided_by_coin(0.5)), WRONG) == wrong
    assert _decided_by(HALVES, trace, KeptPaths(decided_by_coin(0.6)), WRONG) == ""  # 0.6 = p/q of token 0 in row 1


def test_the_parameters_of_another_request_are_named():
    rows = {0: (0.25, 0.75), 1: (0.5, 0.5)}

    def alone(index, other):
        law = {(first, 1): 0.5 * mass for first in (0, 1) for mass in rows[other][1:]}
        law |= {(first, 0): 0.5 * rows[other][0] for first in (0, 1)}
        return EngineProgram("alone", lambda: nullcontext(None), lambda: law)

    trace = Trace((((0,), (0, 0)), ((1,), (0, 1))), (), *[lambda text: np.array([0.1, 0.9])] * 2)
    said = _decided_by(HALVES._replace(alone=alone), trace, KeptPaths(accepts_all), WRONG)
    drawn = "new token 2 is drawn from p with the sampling parameters of row 1, (0.25, 0.75) (e.py:1)"
    assert said == f"; {drawn}, expected with those of row 2: p = (0.5, 0.5)"
    rows[0] = (0.75, 0.25)
    assert _decided_by(HALVES._replace(alone=alone), trace, KeptPaths(accepts_all), WRONG) == ""


def test_of_many_rows_only_the_wrong_one_is_shown():
    worst = (0,) * 10 + (1,) * 10
    beyond = BeyondOutcome(worst, "0.2", "0.1")
    then = f"the new tokens should be {worst} with probability 0.1, but are with 0.2"
    said = "the new tokens of all rows, with 1 1 1 1 1 1 1 1 1 1 in row 2, should come with probability 0.1, but come"
    assert then_of_request(HALVES, beyond, WRONG).startswith(said)
    assert then_of_request(HALVES, beyond, None) == then
    rows = {text: {} for text in ((0,), (0, 0), (1,), (1, 0), (1, 0, 1), (1, 1))}
    trace = Trace((((0,), (0, 0)), ((1,), (0, 1))), ())
    assert list(rows_of_request(rows, trace, WRONG)) == [(1,), (1, 0)]
    assert rows_of_request(rows, None, WRONG) == rows


def penalised(row, text):
    weights = [mass / (3.0 if token in text else 1.0) for token, mass in enumerate(row)]
    return [mass / sum(weights) for mass in weights]


def penalty_before_the_block(scenario):
    """Return an engine with a penalty that does not count the accepted drafts of a round."""

    def choose(row):
        return random.choices(range(len(row)), row)[0]

    def decode(prompt, speculates=True):
        text, end = list(prompt), len(prompt) + scenario.horizon
        while len(text) < end:
            seen, drafts = list(text), min(2, end - len(text) - 1) if speculates else 0
            for _ in range(drafts):
                p, q = penalised(scenario.target(tuple(text)), seen), scenario.draft(tuple(text))
                token = choose(q)
                if random.random() >= p[token] / q[token]:
                    text.append(choose([max(a - b, 0) for a, b in zip(p, q, strict=True)]))
                    break
                text.append(token)
            else:
                text.append(choose(penalised(scenario.target(tuple(text)), seen)))
        return text[len(prompt) :]

    return Made(decode, lambda prompt: decode(prompt, speculates=False))


def test_a_request_that_is_wrong_alone_too_is_explained_alone():
    subject = made_subject(penalty_before_the_block, "it")
    programs = [program for program in subject.programs if program.name == "open_after_3_4-v3-p0-h3-s64, then 2101"]
    one = subject.with_programs(programs)
    (case,) = check_named("law_is_target").cases(one)
    example = case.examine(Conditions()).counterexample
    assert example.named
    assert "as if a penalty did not count it" in example.fault
    assert example.let[0].startswith(
        "request 1 of setting open_after_3_4-v3-p0-h3-s64, then 2101, which is wrong alone"
    )


def test_a_token_that_a_row_of_p_leaves_out_is_named():
    p, q = (0.4, 0.4, 0.2), (0.5, 0.25, 0.25)
    said = _wrong_draw(token(0, 2 / 3, 0.0, 1 / 3), (2, 0), p, q)
    assert said.startswith("; new token 2 is drawn from p without token 1 = (0.667, 0, 0.333) (e.py:1), where p = ")
    other = _wrong_draw(token(0, 0.6, 0.0, 0.4), (2, 0), p, q)
    assert other.startswith("; new token 2 is drawn from (0.6, 0, 0.4) (e.py:1), where p = ")


def two_coins(rows_of):
    """Return a program of two rows, each of a token and 0; ``rows_of(one, other)`` gives the tokens from two coins."""

    def program(draws):
        coins = [draws.categorical([0.25, 0.75], ("random.random", f"e.py:{line}")) for line in (1, 2)]
        one, other = rows_of(*coins)
        return one, 0, other, 0

    return program


def test_a_draw_that_decides_about_two_rows_is_named():
    said = "the rows share random numbers: one draw (e.py:2) decides about rows 1 and 2"
    assert _shared_draw(HALVES, KeptPaths(two_coins(lambda one, other: (one * other, other)))) == (said,)


def test_rows_with_draws_of_their_own_share_none():
    assert _shared_draw(HALVES, KeptPaths(two_coins(lambda one, other: (one, other)))) == ()
    assert _shared_draw(HALVES, KeptPaths(two_coins(lambda one, other: (other, one)))) == ()


def test_a_draw_is_not_called_shared_by_some_of_the_paths(monkeypatch):
    monkeypatch.setattr("specverify.checks.explaining.engine_paths.MOST_PATHS", 3)
    assert _shared_draw(HALVES, KeptPaths(two_coins(lambda one, other: (other, other)))) == ()
