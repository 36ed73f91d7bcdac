"""The line of a draw names the caller of its function, where several lines call the function."""

from __future__ import annotations

import copy
import pickle
import random

from specverify.checks.explaining.given_drafts import place_of
from specverify.intercept.caller import DrawLine
from specverify.intercept.everywhere import answered_everywhere
from specverify.laws.draws import Narrated, Tape


def coin():
    return random.random() < 0.5


def two_coins():
    first = coin()
    return first, coin()


def alone():
    return random.random() < 0.25


def drawn_lines(program):
    narrated = Narrated(Tape(0))
    with answered_everywhere(narrated):
        program()
    return narrated.decisions


def test_a_helper_that_several_lines_call_is_named_with_its_caller():
    first, second = drawn_lines(two_coins)
    helper, body = coin.__code__.co_firstlineno + 1, two_coins.__code__.co_firstlineno
    name = "test_draw_lines.py"
    assert first.site[1] == second.site[1] == f"{name}:{helper}"
    assert place_of(first) == f"{name}:{helper} called from {name}:{body + 1}"
    assert place_of(second) == f"{name}:{helper} called from {name}:{body + 2}"


def test_a_function_that_one_line_calls_is_named_alone():
    for _ in range(2):
        [decision] = drawn_lines(alone)
        assert place_of(decision) == f"test_draw_lines.py:{alone.__code__.co_firstlineno + 1}"


def test_a_line_is_its_text_and_keeps_its_caller():
    line = DrawLine("it.py:3")
    line.called_from = "it.py:9"
    for other in (copy.copy(line), pickle.loads(pickle.dumps(line))):
        assert other == "it.py:3"
        assert hash(other) == hash("it.py:3")
        assert other.called_from == "it.py:9"
