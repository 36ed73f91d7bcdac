"""Clocks without the time in which a thread waits for a processor, and what is decided by them."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
import time

import pytest

from specverify.base import own_time
from specverify.base.own_time import own_clock
from specverify.foreign.limit import PROLONGED, OutOfTime, time_limit
from specverify.run import worker


def machine(monkeypatch, running, waiting, idle=1.0):
    """Let each living thread run and wait for these shares of the time, and the processors be idle for ``idle``.

    The process runs for the share ``running`` of the time too.
    """
    begun = time.monotonic()

    def times_of_threads(folder):
        passed = time.monotonic() - begun
        return {"1": (running * passed, waiting * passed)}

    monkeypatch.setattr(own_time, "_times_of_threads", times_of_threads)
    monkeypatch.setattr(own_time, "_clock_gettime", lambda clock: running * (time.monotonic() - begun))
    monkeypatch.setattr(own_time, "_idle_seconds", lambda: idle * (time.monotonic() - begun))
    monkeypatch.setattr(own_time, "_OWN", own_time._clock_of(0))


@pytest.fixture
def busy(monkeypatch):
    """Let this machine be so busy that a thread waits nine tenths of its time for a processor."""
    machine(monkeypatch, running=0.1, waiting=0.9)


def works(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


def told(monkeypatch, readings):
    """Return what a clock tells at each of ``readings`` but the first, from which it begins."""
    at = [readings[0]]
    monkeypatch.setattr(own_time, "_read", lambda process: at[0])
    monkeypatch.setattr(own_time, "monotonic", lambda: at[0].now)
    now, result = own_time._clock_of(0), []
    for one in readings[1:]:
        at[0] = one
        result.append(now())
    return result


def reading(now, ran=0.0, idle=0.0, **threads):
    return own_time._Readings(now, threads, ran, idle)


def test_a_clock_leaves_out_what_a_thread_waits(monkeypatch):
    readings = [reading(0, a=(0, 0)), reading(10, 4, a=(4, 6)), reading(20, 4, a=(4, 6)), reading(30, 5, a=(5, 8))]
    assert told(monkeypatch, readings) == [4, 14, 22]  # it sleeps from 10 to 20, and for 7 s afterwards


def test_a_clock_counts_all_time_in_which_a_thread_of_the_process_runs(monkeypatch):
    """The thread a waits, and meanwhile b runs."""
    readings = [reading(0, a=(0, 0), b=(0, 0)), reading(10, 12, a=(2, 8), b=(10, 0))]
    assert told(monkeypatch, readings) == [10]


def test_a_clock_leaves_out_what_a_thread_waits_while_others_sleep(monkeypatch):
    readings = [reading(0, a=(0, 0)), reading(10, 2, a=(0, 0), b=(2, 8))]
    assert told(monkeypatch, readings) == [2]


def test_waiting_of_ended_threads_is_left_out_as_far_as_no_processor_was_idle(monkeypatch):
    busy = [reading(0, a=(0, 0)), reading(10, 3, a=(1, 0))]
    assert told(monkeypatch, busy) == [3]
    idle = [reading(0, a=(0, 0)), reading(10, 3, 10, a=(1, 0))]
    assert told(monkeypatch, idle) == [10]
    sleeping = [reading(0, a=(0, 0)), reading(10, 0.01, a=(0.01, 0))]  # nothing has ended
    assert told(monkeypatch, sleeping) == [10]


def test_waiting_that_is_reported_late_is_left_out_later(monkeypatch):
    readings = [
        reading(0, a=(0, 0)),
        reading(1, 0, a=(0, 0)),
        reading(2, 0.5, a=(0.5, 1.5)),
        reading(3, 0.5, a=(0.5, 1.5)),
    ]
    assert told(monkeypatch, readings) == [1, 1.5, 1.5]


def test_a_clock_never_goes_back(monkeypatch):
    """An interval shorter than the report is accurate counts at first, and is left out afterwards."""
    readings = [
        reading(0, a=(0, 0)),
        reading(0.04, a=(0, 0)),
        reading(0.1, 0.01, a=(0.01, 0.09)),
        reading(1, 0.91, a=(0.91, 0.09)),
    ]
    assert told(monkeypatch, readings) == [0.04, 0.04, pytest.approx(0.91)]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not report it in /proc")
def test_the_system_reports_the_times_of_threads_and_processes():
    before = own_time._read(0)
    if not before.threads:
        pytest.skip("this kernel keeps no statistics of its scheduler")
    time.sleep(0.05)
    works(0.05)
    after = own_time._read(0)
    assert after.now > before.now
    assert after.ran > before.ran
    assert after.idle >= before.idle > 0
    own = str(threading.get_native_id())
    assert after.threads[own][0] > before.threads[own][0]
    assert after.threads[own][1] >= before.threads[own][1]
    other = own_time._read(os.getpid())
    assert other.ran >= after.ran
    assert set(other.threads) == set(after.threads)


def test_clocks_of_a_process_advance_alike():
    first, second = own_clock(), own_clock()
    works(0.1)
    begun = first()
    assert begun == pytest.approx(second(), abs=0.01)
    for _ in range(20):
        second()
        works(0.001)
    assert first() - begun == pytest.approx(second() - begun, abs=0.02)


@pytest.mark.parametrize("process", [0, os.getpid()], ids=["this process", "a process by its id"])
def test_sleep_counts(process):
    """The clock is a new one: that of this process may still have waiting to leave out."""
    now = own_time._clock_of(process)
    time.sleep(0.3)
    assert now() >= 0.25


def test_without_such_a_report_the_clock_is_an_ordinary_one(monkeypatch):
    assert not own_time._times_of_threads("/proc/no such folder")
    monkeypatch.setattr(own_time, "_times_of_threads", lambda folder: {})
    first = time.monotonic()
    now = own_time._clock_of(0)
    time.sleep(0.06)
    assert 0.06 <= now() <= time.monotonic() - first


@pytest.mark.usefixtures("busy")
def test_a_limit_is_not_reached_while_the_thread_waited_for_waits_for_a_processor():
    """The main thread sleeps until the other one ends."""

    def works_in_another_thread():
        thread = threading.Thread(target=works, args=(0.5,))
        thread.start()
        thread.join()

    with time_limit(0.2):
        works_in_another_thread()
    with pytest.raises(OutOfTime), time_limit(0.02):
        threading.Event().wait(60)


@pytest.mark.usefixtures("busy")
def test_a_limit_is_not_reached_by_waiting_for_a_processor():
    with time_limit(0.2):
        works(0.5)
    with pytest.raises(OutOfTime), time_limit(0.02):
        works(60)


def test_a_limit_is_reached_by_the_same_work_on_an_idle_machine(monkeypatch):
    machine(monkeypatch, running=1.0, waiting=0.0)
    with pytest.raises(OutOfTime), time_limit(0.2):
        works(60)


@pytest.mark.usefixtures("busy")
def test_a_limit_in_another_thread_is_not_reached_by_waiting_either():
    done = []

    def limited():
        with time_limit(0.2):
            works(0.4)
        done.append(True)

    thread = threading.Thread(target=limited)
    thread.start()
    thread.join()
    assert done


@pytest.mark.usefixtures("busy")
def test_another_timer_of_the_process_is_in_time_by_its_own_clock():
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    begun = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(OutOfTime), time_limit(300.0):
            works(60)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() < begun + 60


def test_the_end_of_a_process_is_put_off_as_its_limit_is(monkeypatch):
    ends = []
    monkeypatch.setattr(faulthandler, "dump_traceback_later", lambda seconds, **_: ends.append(seconds))
    prolonged = worker._ended_after(10.0, sys.stderr)
    prolonged(9.0)  # of a limit that ends no later
    assert ends == [10.0 + worker.GRACE]
    prolonged(20.0)
    assert ends[1:] == [20.0 + worker.GRACE]


@pytest.mark.usefixtures("busy")
def test_a_limit_says_how_long_it_still_lasts():
    told = []
    token = PROLONGED.set(told.append)
    try:
        with time_limit(0.1):
            works(0.3)
    finally:
        PROLONGED.reset(token)
    assert told[0] == 0.1
    assert len(told) > 1
    assert told[0] >= told[-1] > 0
