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
from specverify.base.own_time import clock_of_process, own_clock
from specverify.foreign.limit import PROLONGED, OutOfTime, time_limit
from specverify.run import worker


@pytest.fixture
def busy(monkeypatch):
    """Let this machine be so busy that a thread waits nine tenths of its time for a processor."""
    begun = time.monotonic()
    monkeypatch.setattr(own_time, "_waiting_seconds", lambda file: 0.9 * (time.monotonic() - begun))


def works(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


def test_a_clock_leaves_out_what_the_thread_waits_and_never_goes_back(monkeypatch):
    waited = iter([3.0, 5.0, 0.0])  # the last value is that of a thread that has ended
    monkeypatch.setattr(own_time, "_waiting_seconds", lambda file: next(waited))
    monkeypatch.setattr(own_time, "monotonic", lambda: 10.0)
    with own_clock() as now:
        assert [now(), now(), now()] == [7.0, 5.0, 5.0]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not report it in /proc")
def test_the_system_reports_the_waiting_time_of_threads_and_processes():
    file = own_time._opened(f"/proc/self/task/{threading.get_native_id()}/schedstat")
    if file is None:
        pytest.skip("this kernel keeps no statistics of its scheduler")
    before = own_time._waiting_seconds(file)
    time.sleep(0.05)  # to sleep is not to wait for a processor
    works(0.01)
    assert 0 <= before <= own_time._waiting_seconds(file)
    os.close(file)
    for clock in (own_clock(), clock_of_process(os.getpid())):
        with clock as now:
            first = now()
            time.sleep(0.02)
            assert now() >= first + 0.02 - 1e-3


def test_without_such_a_report_the_clock_is_an_ordinary_one():
    with own_time._clock("/proc/no such file") as now:
        first = time.monotonic()
        assert first <= now() <= time.monotonic()


@pytest.mark.usefixtures("busy")
def test_a_limit_is_not_reached_by_waiting_for_a_processor():
    with time_limit(0.2):
        works(0.5)
    with pytest.raises(OutOfTime), time_limit(0.02):
        works(60)


def test_a_limit_is_reached_by_the_same_work_on_an_idle_machine(monkeypatch):
    monkeypatch.setattr(own_time, "_waiting_seconds", lambda file: 0.0)
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
