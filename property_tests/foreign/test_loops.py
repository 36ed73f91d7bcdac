"""Loops that go on without a draw: named by their line, by counting turns, and right programs left alone."""

from __future__ import annotations

import itertools
import random
import re
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from specverify.base.verdict import Status
from specverify.foreign import loops
from specverify.foreign.guard import guarded
from specverify.foreign.limit import LoopsWithoutDrawing, OutOfTime, time_limit
from specverify.intercept.everywhere import answered_everywhere
from specverify.laws.enumeration import program_law
from specverify.testing import SpeculationUndecided, check_engine, check_verifier

torch: Any = None
with suppress(ImportError):
    import torch

pytestmark = pytest.mark.skipif(
    not loops.MONITORED and sys.gettrace() is not None, reason="on Python 3.11 turns are counted where nothing traces"
)
GRAMMAR = r"{}:{} loops without drawing: 2 000 turns of one loop"


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Begin to count after a moment, and stop after few turns; threads that other tests left are not the program's."""
    monkeypatch.setattr(loops, "_THREADS_BEFORE", frozenset(sys._current_frames()))
    monkeypatch.setattr(loops, "QUIET", 0.1)
    monkeypatch.setattr(loops, "WHILE_TURNS", 2_000)
    monkeypatch.setattr(loops, "FOR_TURNS", 20_000)


@pytest.fixture
def counted(monkeypatch):
    """Return a list with the number of turns that were counted: a right program that is not counted shows nothing."""
    number, turned = [0], loops.LoopWatch._turned

    def counting(watch, frame, source, head):
        number[0] += 1
        turned(watch, frame, source, head)

    monkeypatch.setattr(loops.LoopWatch, "_turned", counting)
    return number


def line_of(function, text):
    """Return the number of the first line of a function that has a text in it."""
    code = function.__code__
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number in range(code.co_firstlineno, len(lines)) if text in lines[number - 1])


def drawn(weights):
    """Return a token by the inverse CDF."""
    u, total = random.random(), 0.0
    for token, weight in enumerate(weights):
        total += weight
        if u < total:
            return token
    return len(weights) - 1


# Programs that never come to an end


def numpy_verifier(p, q, draft_tokens):
    out = []
    while len(out) < 1:
        for i, token in enumerate(draft_tokens):
            if p[i, token] > q[i, token] + 5:
                out.append(int(token))
    return out


def torch_verifier(p, q, draft_tokens):
    out = torch.empty(0, dtype=torch.long)
    while out.numel() < 1:
        accepted = p[:-1].gather(1, draft_tokens[:, None])[:, 0] > 2
        out = torch.cat([out, draft_tokens[accepted]])
    return out


def add_accepted(out, drafts):
    while not out:
        out.extend(token for token in drafts if token < 0)


def helped_verifier(p, q, draft_tokens):
    out = []
    add_accepted(out, draft_tokens)
    return out


def loops_at_the_end():
    """Wait for an end of the text that only token 1 brings: the first decode has it, other paths have not."""
    tokens = [drawn([0.5, 0.5]) for _ in range(2)]
    while tokens[-1] != 1:
        tokens = tokens[:2]
    return tokens


def counts_on():
    """Run over numbers that never end."""
    tokens = []
    for _ in itertools.count():
        if tokens:
            break
    return tokens


def loops_in_a_generator():
    def tokens():
        found = []
        while not found:
            found = found[:1]
        yield from found

    return list(tokens())


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize(
    ("verifier", "loop"),
    [
        (numpy_verifier, numpy_verifier),
        pytest.param(torch_verifier, torch_verifier, marks=pytest.mark.skipif(torch is None, reason="it needs torch")),
        (helped_verifier, add_accepted),
    ],
)
def test_a_verifier_that_loops_is_named_by_the_line_of_its_loop(verifier, loop):
    verdicts = check_verifier(verifier, form="row", on_fail=None, timeout=300.0)
    said = GRAMMAR.format("test_loops.py", line_of(loop, "while"))
    assert {verdict.status for verdict in verdicts} == {Status.UNKNOWN}
    assert all(re.match(said, verdict.statement) for verdict in verdicts), verdicts[0]


@pytest.mark.thorough
def test_an_engine_that_loops_on_some_paths_alone_is_named_and_its_samples_do_not_decide():
    law = {(0, 1): 0.5, (1, 1): 0.5}
    with pytest.raises(SpeculationUndecided) as raised:
        check_engine(loops_at_the_end, law, sampled=True, timeout=300.0)
    place = GRAMMAR.format("test_loops.py", line_of(loops_at_the_end, "while"))
    assert re.search(place, str(raised.value))
    assert "Let the loop end, or raise, where nothing is added" in str(raised.value)


def test_an_engine_whose_first_decode_loops_is_named_in_every_check():
    verdicts = check_engine(loops_in_a_generator, {(0,): 1.0}, on_fail=None)
    said = rf"its first decode does not end: {GRAMMAR.format('test_loops.py', '.*')}"
    assert {verdict.status for verdict in verdicts} == {Status.UNKNOWN}
    assert all(re.match(said, verdict.statement) for verdict in verdicts), verdicts[0]
    assert f":{line_of(loops_in_a_generator, 'while')} " in verdicts[0].statement


def test_a_for_loop_may_make_more_turns_and_is_named_too():
    said = rf"test_loops.py:{line_of(counts_on, 'for')} .* 20 000 turns of one loop"
    with pytest.raises(LoopsWithoutDrawing, match=said), time_limit(60.0, watch_loops=True):
        counts_on()


def test_the_check_of_loops_can_be_left_out_and_the_time_limit_then_says_less():
    """The control: without counting the same loop is stopped by the time limit alone."""
    with pytest.raises(OutOfTime, match=r"looping or waiting|stood still") as raised, time_limit(1.0):
        add_accepted([], [])
    assert not isinstance(raised.value, LoopsWithoutDrawing)


def test_an_exception_that_is_swallowed_comes_again():
    def swallows_and_goes_on():
        for _ in range(3):
            with suppress(BaseException):
                add_accepted([], [])

    with pytest.raises(LoopsWithoutDrawing, match="loops without drawing"), time_limit(60.0, watch_loops=True):
        swallows_and_goes_on()


@pytest.mark.skipif(not loops.MONITORED, reason="Python 3.11 traces the thread alone that begins to trace")
def test_a_loop_is_found_in_a_thread_that_is_not_the_main_thread():
    found = []

    def work():
        try:
            with time_limit(60.0, watch_loops=True):
                add_accepted([], [])
        except LoopsWithoutDrawing as reason:
            found.append(str(reason))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert re.match(GRAMMAR.format("test_loops.py", line_of(add_accepted, "while")), found[0])


# Right programs that take long


def busy(seconds):
    """Use so much CPU time in calls of C."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(20_000))


def test_a_slow_engine_that_draws_is_left_alone():
    """Each draw takes longer than the quiet time, and the turns between two of them are too few."""

    def engine():
        tokens = []
        while len(tokens) < 2:
            busy(0.15)
            tokens.append(drawn([0.25, 0.75]))
        return tuple(tokens)

    def program(draws):
        with answered_everywhere(draws):
            return engine()

    found = guarded(partial(program_law, program), 300.0, watch_loops=True)
    assert found.result is not None
    assert found.result.probabilities == {(0, 0): 0.0625, (0, 1): 0.1875, (1, 0): 0.1875, (1, 1): 0.5625}


def test_a_loop_that_draws_is_counted_from_each_draw_on(counted):
    """It makes many more turns than are allowed without a draw."""

    def draws_now_and_then():
        due = 1_000
        while counted[0] < 3 * loops.WHILE_TURNS:
            if counted[0] >= due:
                random.random()
                due += 1_000

    with time_limit(60.0, watch_loops=True):
        draws_now_and_then()


def test_loops_inside_a_loop_begin_anew_with_each_of_its_turns(counted):
    """Such is a matrix product in plain Python: many turns together, few in a row."""

    def product():
        total = 0
        while counted[0] < 10_000:
            column = 0
            while column < 1_000:
                column += 1
                total += column
        return total

    with time_limit(60.0, watch_loops=True):
        assert product() > 0


def test_a_loop_that_waits_for_another_thread_is_left_alone():
    def waits():
        done = []

        def works():
            busy(0.5)
            done.append(1)

        worker = threading.Thread(target=works)
        worker.start()
        turns = 0
        while not done:
            turns += 1
        worker.join()
        return turns

    with time_limit(60.0, watch_loops=True):
        assert waits() > loops.WHILE_TURNS


def test_nothing_is_left_behind():
    """Neither a tracer nor a tool stays, whether or not a loop was found."""
    before = sys.gettrace()
    with pytest.raises(LoopsWithoutDrawing), time_limit(60.0, watch_loops=True):
        add_accepted([], [])
    with time_limit(60.0, watch_loops=True):
        busy(0.3)
    assert sys.gettrace() is before
    if loops.MONITORED:
        assert all(sys.monitoring.get_tool(tool) != "specverify loops" for tool in range(6))
    assert sys._getframe().f_trace is None or before is not None


def test_the_bounds_are_beyond_what_a_decode_does(monkeypatch):
    monkeypatch.undo()
    assert loops.WHILE_TURNS > 262_144  # the tokens of the largest vocabularies
    assert loops.FOR_TURNS > 32_000 * 288  # the weights of the last layer of a small model
