"""Threads that outlive the path they were started on print nothing; an error of one that is followed is printed."""

from __future__ import annotations

import _thread
import threading

import numpy as np
import pytest

from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import NeedsValue
from specverify.laws.draws import Tape

RNG = np.random.default_rng(0)


def abandoned(start, refused=True):
    """Run a path that is given up, or ends, while a thread of it waits; then let the thread decide."""
    others = threading.enumerate()
    given_up, done, drawn = threading.Event(), threading.Event(), threading.Event()

    def decide():
        try:
            number = RNG.random()
            drawn.set()
            given_up.wait(10)
            number < 0.5  # noqa: B015 - it decides where nobody answers any more
        finally:
            done.set()

    def path():
        with answered_everywhere(Tape(0)):
            thread = start(decide)
            drawn.wait(10)
            if refused:
                RNG.gamma(2)
        return thread

    if refused:
        with pytest.raises(NeedsValue, match="gamma"):
            path()
    else:
        path()
    given_up.set()
    assert done.wait(10)
    for thread in threading.enumerate():
        if thread not in others:
            thread.join(10)


def as_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    return thread


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("refused", [True, False])
@pytest.mark.parametrize("start", [as_thread, lambda function: _thread.start_new_thread(function, ())])
@pytest.mark.filterwarnings("error")
def test_a_thread_of_an_abandoned_path_prints_no_traceback(start, refused, capfd):
    abandoned(start, refused)
    assert capfd.readouterr() == ("", "")


def test_an_error_of_a_thread_on_a_path_that_is_followed_is_told():
    told = []
    before, threading.excepthook = threading.excepthook, told.append
    try:
        with answered_everywhere(Tape(0)):
            as_thread(lambda: 1 / 0).join(10)
    finally:
        threading.excepthook = before
    assert [type(each.exc_value) for each in told] == [ZeroDivisionError]


def test_a_refusal_in_a_thread_is_the_refusal_of_the_run():
    with pytest.raises(NeedsValue, match="gamma"), answered_everywhere(Tape(0)):
        as_thread(lambda: RNG.gamma(2)).join(10)
