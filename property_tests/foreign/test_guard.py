"""Inside somebody's own test: what a subject does to the process is named, and put back where it can be."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path

import misbehaving
import pytest

from specverify.base.process import changes_since, process_state
from specverify.base.verdict import Status
from specverify.checks import checks_named
from specverify.foreign.guard import guarded
from specverify.run.verify import Checklist, run_check
from specverify.subjects.external import decode_subject
from specverify.subjects.subject import Subject
from specverify.testing import SpeculationUndecided, UnusableSubject, check_decoder, check_subject

HERE = r"misbehaving.py:\d+"
ENDINGS = {
    "exits": rf"it ends the process: SystemExit: 0 \({HERE}\)",
    "raises_system_exit": rf"it ends the process: SystemExit \({HERE}\)",
    "raises_interrupt": rf"it ends the process: KeyboardInterrupt \({HERE}\)",
    "raises_generator_exit": rf"it ends the process: GeneratorExit \({HERE}\)",
    "exits_at_once": rf"it calls os._exit\(0\) \({HERE}\)",
    "aborts": rf"it calls os.abort\(\) \({HERE}\)",
    "kills_itself": rf"it calls os.kill\(\d+, .*\) \({HERE}\)",
    "signals_itself": rf"it calls signal.raise_signal\(.*\) \({HERE}\)",
    "becomes_another": rf"it calls os.execv\('/bin/true', \['true'\]\) \({HERE}\)",
    "runs_out_of_memory": rf"MemoryError \({HERE}\)",
    "forks": rf"it calls os.fork\(\) \({HERE}\), and both processes come back from the call",
}
CHANGES = {
    "changes_directory": "it changes the working directory to /",
    "changes_a_handler": "it changes the handler of SIGTERM",
    "leaves_a_timer": r"it leaves a timer running \(ITIMER_REAL, \d+ s to go\)",
    "replaces_output": "it replaces sys.stdout",
    "redirects_input": "it closes or redirects file descriptor 0, the standard input",
    "starts_threads": r"it leaves \d+ threads running \(.*\), more than a pool of workers",
}


def verdicts_of(name, **options):
    """Return the verdicts of a subject, in this process."""
    return check_decoder(getattr(misbehaving, name), on_fail=None, quick=True, **options)


def check_named(verdicts, sentence):
    """Every verdict says it, and none holds."""
    assert {verdict.status for verdict in verdicts} == {Status.UNUSABLE}
    for verdict in verdicts:
        assert re.match(sentence, verdict.statement), verdict.statement


@pytest.mark.parametrize("name", ENDINGS)
def test_a_subject_that_would_end_the_process_is_named_by_file_and_line(name):
    check_named(verdicts_of(name), ENDINGS[name])


@pytest.mark.thorough(keep=6)
@pytest.mark.parametrize("name", [name for name in CHANGES if name != "starts_threads"])
def test_what_a_subject_changes_is_named_and_put_back(name):
    before = Path.cwd(), signal.getsignal(signal.SIGTERM), sys.stdout, os.fstat(0)[:3]
    check_named(verdicts_of(name)[:1], CHANGES[name])
    assert (Path.cwd(), signal.getsignal(signal.SIGTERM), sys.stdout, os.fstat(0)[:3]) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_worker_for_every_call_is_named(monkeypatch):
    monkeypatch.setattr("specverify.base.process.MOST_WORKERS", 4)
    (check,) = checks_named(("greedy_is_argmax",))
    subject = decode_subject(misbehaving.starts_threads, "misbehaving:starts_threads")
    check_named([run_check(subject, check, Checklist((check,)))], CHANGES["starts_threads"])


def test_a_closed_stream_is_named_and_another_is_put_in_its_place(tmp_path, monkeypatch):
    with (tmp_path / "output").open("w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        check_named(verdicts_of("closes_output")[:1], "it closes sys.stdout")
        assert not sys.stdout.closed


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("starts_a_pool", "it leaves 3 threads running (worker-0, worker-1, worker-2)"),
        ("starts_a_process", "it leaves 1 child process running"),
    ],
)
def test_what_a_right_subject_may_do_once_is_noted_and_holds(name, note, monkeypatch):
    monkeypatch.setattr(misbehaving, "_pool", [])
    verdicts = verdicts_of(name)
    assert {verdict.status for verdict in verdicts} == {Status.HOLDS}
    assert [note] in [verdict.figures.get("notes") for verdict in verdicts]
    assert sum("notes" in verdict.figures for verdict in verdicts) == 1
    for started in misbehaving._pool:
        getattr(started, "kill", lambda: None)()
        getattr(started, "wait", lambda: None)()


def test_a_fault_raises_in_the_ordinary_way():
    with pytest.raises(UnusableSubject, match=r"SystemExit: 0 \(misbehaving.py:\d+\)"):
        check_decoder(misbehaving.exits, quick=True)
    check_decoder(misbehaving.right, quick=True)


def test_a_fault_that_is_seen_once_is_not_forgotten():
    calls = []

    def exits_once(draws, target, draft, tokens):
        calls.append(1)
        if len(calls) == 1:
            sys.exit(0)
        return misbehaving.right(draws, target, draft, tokens)

    first, *others = check_decoder(exits_once, on_fail=None, quick=True)
    assert first.status is Status.UNUSABLE
    assert first.statement.startswith("it ends the process: SystemExit: 0 (test_guard.py:")
    assert {verdict.status for verdict in others} == {Status.HOLDS}


@pytest.mark.thorough
def test_a_swallowed_ending_is_named_too():
    def swallows(draws, target, draft, tokens):
        try:
            os._exit(0)
        except BaseException:  # noqa: BLE001 - the point of it
            return misbehaving.right(draws, target, draft, tokens)

    verdicts = check_decoder(swallows, checks=["law_is_target"], on_fail=None)
    check_named(verdicts[:1], r"it calls os._exit\(0\) \(test_guard.py:\d+\)")


def test_a_fault_does_not_hide_a_refutation():
    def wrong(draws, target, draft, tokens):
        os.chdir("/")
        return (draws.categorical(draft(tokens), ("q",)),)

    law = next(
        verdict for verdict in check_decoder(wrong, on_fail=None, quick=True) if verdict.check == "law_is_target"
    )
    assert law.status is Status.REFUTED
    assert law.counterexample is not None
    assert law.statement.endswith("; it also changes the working directory to /")


def test_an_interrupt_from_outside_is_no_fault_of_the_subject():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # off in a background job
    try:
        with pytest.raises(KeyboardInterrupt):
            check_decoder(misbehaving.interrupted)
    finally:
        signal.signal(signal.SIGINT, before)


def test_calls_that_end_other_processes_are_left_alone():
    def forked():
        child = os.fork()
        if not child:
            os._exit(7)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert guarded(forked, 60.0).result == 7
    assert guarded(lambda: os.kill(os.getpid(), 0), 60.0).ended == ""


def test_nothing_is_replaced_once_it_is_over():
    before = os._exit, os.kill, os.fork, signal.raise_signal, signal.getsignal(signal.SIGINT)
    assert guarded(lambda: os._exit is before[0], 60.0).result is False
    assert (os._exit, os.kill, os.fork, signal.raise_signal, signal.getsignal(signal.SIGINT)) == before


def test_a_process_that_nobody_touched_has_not_changed():
    assert changes_since(process_state()) == ((), ())


def test_a_subject_that_no_check_applies_to_is_not_passed():
    empty = Subject("empty", "nothing to examine", frozenset())
    with pytest.raises(SpeculationUndecided, match="empty: no check applies to it, so nothing was examined"):
        check_subject(empty)
    assert check_subject(empty, on_fail=None) == []


def test_a_write_into_an_array_that_was_handed_out_is_named():
    check_named(
        verdicts_of("writes_into_p"),
        rf"ValueError: .*it writes into an argument array; copy the array first \({HERE}\)",
    )
