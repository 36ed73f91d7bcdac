"""Long commands: pieces of work told as they finish, how far they are, and a line now and then."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from specverify.base.parallel import as_finished, in_parallel
from specverify.report import progress
from specverify.report.progress import Progress, progress_shown


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_come_in_order_and_each_is_told_as_it_finishes(jobs):
    done = []
    works = [partial(pow, number, 2) for number in range(7)]
    assert list(in_parallel(works, jobs, done.append)) == [number**2 for number in range(7)]
    assert sorted(done) == list(range(7))
    assert sorted(as_finished(works, jobs)) == [(number, number**2) for number in range(7)]


def test_what_remains_is_what_the_rest_takes_at_this_rate(monkeypatch):
    clock = iter([100.0, 110.0, 110.0, 110.0])
    monkeypatch.setattr(progress, "monotonic", lambda: next(clock))
    state = Progress("mutants", total=40)
    assert state.remaining is None
    state.done(10, "one of them")
    assert state.remaining == 30
    assert state.left == "about 30 s left"


def test_a_check_under_way_counts_by_its_cases(monkeypatch):
    clock = iter([100.0])
    monkeypatch.setattr(progress, "monotonic", lambda: next(clock, 110.0))
    state = Progress("verify", total=2)
    state.within("mine:decode", "law_is_target", 3, 0)
    assert (state.doing, state.remaining) == ("mine:decode law_is_target, 3 cases", None)
    state.within("mine:decode", "law_is_target", 10, 20)
    assert state.line == "verify: 25% done, 10 s, about 30 s left, mine:decode law_is_target, 10 of 20 cases"
    state.done(1, "mine:decode law_is_target", "mine:decode")
    assert state.remaining == pytest.approx(10)


def test_before_anything_is_done_the_expectation_is_told():
    assert Progress("sampling", total=80, expected=40).remaining == pytest.approx(40, abs=0.1)
    assert Progress("sampling", total=None).left == ""


def test_without_a_terminal_a_line_comes_now_and_then(monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.02)
    text = io.StringIO()
    with progress_shown("alarms", 4, Console(file=text, width=40)) as state:
        state.done(1, "the first [of four], which has a rather long name")
        while text.getvalue().count("\n") < 2:
            time.sleep(0.01)
    line = text.getvalue().splitlines()[-1]
    began, _, told = line.partition(", the first [of four]")
    assert re.fullmatch(r"alarms: 25% done, \d+ s, about \d+ s left", began)
    assert told == ", which has a rather long name"


def test_on_a_terminal_there_is_a_bar_that_goes_away():
    text = io.StringIO()
    with progress_shown("alarms", 4, Console(file=text, force_terminal=True, width=120)) as state:
        state.done(1, "the first")
    assert "alarms: the first" in text.getvalue()


INTERRUPTED = """
import signal
import time
from functools import partial
from specverify.base.parallel import as_finished
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # off in a background job
    try:
        for index, _ in as_finished([partial(time.sleep, 0.1), partial(time.sleep, 60), partial(time.sleep, 60)], 2):
            print(index, flush=True)
    except KeyboardInterrupt:
        print("interrupted")
"""


def test_an_interrupt_ends_the_other_processes_without_a_word(tmp_path):
    program = tmp_path / "interrupted.py"
    program.write_text(INTERRUPTED, "utf-8")
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        [sys.executable, str(program)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout.readline() == "0\n"
        os.killpg(process.pid, signal.SIGINT)
        printed, errors = process.communicate(timeout=50)
    assert (printed, errors, process.returncode) == ("interrupted\n", "", 0)


def test_a_program_that_moves_the_clock_does_not_move_the_elapsed_time(monkeypatch):
    known = Progress("checks", 2)
    monkeypatch.setattr(time, "monotonic", lambda: 1e9)
    assert known.elapsed < 1e6
