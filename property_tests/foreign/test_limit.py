"""One time limit for a subject: what is reached when it is over, what is said then, in any thread."""

from __future__ import annotations

import collections
import gc
import multiprocessing
import random
import re
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NamedTuple

import misbehaving
import numpy as np
import pytest

from specverify.base.verdict import Examination, Status, Verdict
from specverify.checks import CHECKS, Case, checks_named
from specverify.checks.check import of_names
from specverify.foreign import limit
from specverify.foreign.guard import Guarded
from specverify.foreign.limit import OutOfTime, time_limit
from specverify.foreign.places import place_of_frame
from specverify.intercept.caller import file_of
from specverify.laws.draws import Tape
from specverify.run import verify
from specverify.run.verify import Checklist, verify_subject
from specverify.subjects.engine import engine_subject
from specverify.subjects.external import decode_subject
from specverify.subjects.verifier import verifier_subject
from specverify.testing import check_decoder, check_engine

HERE = r"misbehaving.py:\d+"
BUSY = rf"it was looping or waiting, not drawing, at {HERE}, 0 draws into the run going on and none in the last"


def in_another_thread(work):
    """Return what ``work`` returns in a thread that is not the main thread."""
    found = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def statements(name, seconds=0.4):
    """Return what every check says of a subject that has little time."""
    verdicts = check_decoder(getattr(misbehaving, name), on_fail=None, timeout=seconds)
    assert {verdict.status for verdict in verdicts} == {Status.UNKNOWN}
    return [verdict.statement for verdict in verdicts]


@pytest.mark.parametrize("name", ["loops", "sleeps"])
def test_a_subject_that_never_comes_back_is_told_by_file_and_line(name):
    for statement in statements(name):
        assert re.match(f"its first decode did not finish within 0.4 s: {BUSY}", statement), statement


def test_a_loop_is_ended_in_a_thread_that_is_not_the_main_thread_too():
    # On a busy machine the thread that watches may come to look once only, and then does not say "looping".
    once_or_more = rf"it was (looping or waiting, not drawing, )?at {HERE}, 0 draws into the run going on"
    for statement in in_another_thread(lambda: statements("loops")):
        assert re.match(f"its first decode did not finish within 0.4 s: {once_or_more}", statement), statement


def test_a_subject_that_goes_on_drawing_is_told_from_one_that_does_not():
    said = rf"not finished after 0\.\d+ s: it was drawing, at {HERE}, \d+ draws into the run going on"
    subject = decode_subject(misbehaving.draws_for_ever, "misbehaving:draws_for_ever")._replace(probe=None)
    first, *others = verify_subject(subject, Checklist(CHECKS, seconds=0.5))
    assert re.match(said, first.statement), first.statement
    unreached = [verdict for verdict in others if verdict.status is not Status.NOT_APPLICABLE]
    assert {(verdict.status, verdict.statement) for verdict in unreached} == {
        (Status.UNKNOWN, "not reached: the 0.5 s for the subject were over in program_is_its_draws")
    }


def test_where_the_time_went_is_told_also_of_a_check_that_was_not_asked_for(monkeypatch):
    def goes_on(p, q, draft_tokens):
        while random.random() >= 0:
            time.sleep(1e-3)

    monkeypatch.setattr(verify, "warmed_up", lambda subject: subject)
    subject = verifier_subject(goes_on, "goes_on")
    grounds, asked = verify_subject(subject, Checklist(checks_named({"law_is_target"}), seconds=0.2))
    assert (grounds.check, grounds.status) == ("program_is_its_draws", Status.UNKNOWN)
    assert re.match(r"not finished after 0\.\d+ s: it was .*at test_limit\.py:\d+", grounds.statement), grounds
    assert asked.statement == "not reached: the 0.2 s for the subject were over in program_is_its_draws"


@pytest.mark.parametrize(("doing", "told"), [("it was drawing, at a.py:1", True), ("it was looping, at a.py:1", False)])
def test_a_verifier_of_too_many_paths_is_told_the_ways_out(monkeypatch, doing, told):
    monkeypatch.setattr(verify, "guarded", lambda work, seconds, watch_loops: Guarded(None, out_of_time=doing))
    subject = verifier_subject(lambda p, q, draft_tokens: [0], "it")
    case = Case(subject, None, lambda *_: Examination("it is not run"))
    found = verify.run_case(case, checks_named({"law_is_target"})[0], Checklist(()).conditions)
    ways = "fewer drafts have fewer paths (gammas), a loop that draws until a condition holds has no limit of them"
    assert f"{doing}{'; ' * told}" in found.statement
    assert (ways in found.statement) is told


def test_an_engine_that_loops_has_a_verdict_of_every_check():
    def engine():
        while True:
            pass

    verdicts = check_engine(engine, {(0,): 1.0}, timeout=0.4, on_fail=None)
    assert {verdict.status for verdict in verdicts} == {Status.UNKNOWN}
    said = r"its first decode did not finish within 0.4 s: it was at test_limit.py:\d+, and the generators of"
    assert all(re.match(said, verdict.statement) for verdict in verdicts), verdicts
    unready = check_engine(lambda: [0], engine, timeout=0.4, on_fail=None)
    assert {verdict.status for verdict in unready} == {Status.UNKNOWN}
    assert [verdict.check for verdict in unready] == [verdict.check for verdict in verdicts]


@pytest.mark.thorough
def test_a_right_subject_with_time_enough_holds():
    verdicts = check_decoder(misbehaving.right, timeout=600.0)
    assert {verdict.status for verdict in verdicts} == {Status.HOLDS}


# The limit itself


def swallowing_once():
    """Swallow the first exception, and go on until the next."""
    with suppress(OutOfTime):
        time.sleep(600)
    return "went on"


def test_the_limit_is_told_again_and_again_and_at_the_end():
    with pytest.raises(OutOfTime), time_limit(0.1):
        assert swallowing_once() == "went on"

    def turned_into_another():
        try:
            time.sleep(600)
        except BaseException as error:
            raise RuntimeError from error

    with pytest.raises(OutOfTime), time_limit(0.1):
        turned_into_another()


def test_an_installed_package_is_not_left_half_imported(tmp_path, monkeypatch):
    """What is imported first of it stays, and is then no attribute of the package that is imported again."""
    package = tmp_path / "site-packages" / "slow_to_import"
    package.mkdir(parents=True)
    (package / "part.py").write_text("VALUE = 1")
    waiting = "import time\nend = time.monotonic() + 0.1\nwhile time.monotonic() < end:\n    time.sleep(0.001)\n"
    (package / "__init__.py").write_text(f"import slow_to_import.part\n{waiting}")
    monkeypatch.syspath_prepend(package.parent)

    def imports_and_goes_on():
        import_module("slow_to_import")
        while True:
            time.sleep(1e-3)

    with pytest.raises(OutOfTime), time_limit(0.03):
        imports_and_goes_on()
    assert import_module("slow_to_import").part.VALUE == 1


SLOW_TO_LEAVE = """
import time
class Slow:
    whole = True
    def __enter__(self):
        self.whole = False
    def __exit__(self, *_):
        end = time.monotonic() + 0.1
        while time.monotonic() < end:
            time.sleep(0.001)
        self.whole = True
"""


def test_a_context_of_a_library_is_not_left_by_half():
    """It puts back what stood for somebody else's calls: whoever is examined next would meet the rest."""
    library: dict[str, Any] = {}
    exec(compile(SLOW_TO_LEAVE, np.__file__, "exec"), library)
    slow = library["Slow"]()

    def leaves_and_goes_on():
        with slow:
            pass
        while True:
            time.sleep(1e-3)

    with pytest.raises(OutOfTime), time_limit(0.03):
        leaves_and_goes_on()
    assert slow.whole


def test_what_is_done_in_time_is_left_alone():
    with time_limit(600.0):
        assert signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    with pytest.raises(ZeroDivisionError), time_limit(600.0):
        raise ZeroDivisionError

    def quick():
        with time_limit(600.0):
            return threading.active_count()

    assert in_another_thread(quick) >= 2
    assert not [thread for thread in threading.enumerate() if thread.name == "specverify time limit"]


def test_another_timer_of_the_process_is_kept_and_is_in_time():
    rang = []
    before = signal.signal(signal.SIGALRM, lambda *_: rang.append(True))
    try:
        signal.setitimer(signal.ITIMER_REAL, 600.0)
        with time_limit(300.0):
            pass
        left, _ = signal.setitimer(signal.ITIMER_REAL, 0.2)
        assert 0 < left <= 600
        with pytest.raises(OutOfTime), time_limit(300.0):
            time.sleep(200)
        while not rang:
            time.sleep(0.01)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class _Found(NamedTuple):
    token: int


@dataclass
class _Request:
    token: int


@pytest.mark.parametrize("made", [_Found, _Request])
def test_the_methods_of_named_tuples_and_data_classes_are_in_no_file_of_theirs(made):
    """They are compiled from a string, of which no reader knows a line."""
    places = []
    code = (made.__new__ if made is _Found else made.__init__).__code__

    def seen(frame, event, _):
        if frame.f_code is code:
            places.extend((place_of_frame(frame), frame.f_code.co_filename))

    sys.setprofile(seen)
    try:
        made(0)
    finally:
        sys.setprofile(None)
    assert places[1] == "<string>"
    assert re.fullmatch(r"test_limit.py:\d+", places[0])


def test_nor_is_the_line_that_a_process_begins_with(monkeypatch):
    frame = SimpleNamespace(f_code=SimpleNamespace(co_filename="<string>"), f_globals={}, f_back=None)
    assert file_of(frame) == "<string>"  # of python -c, where the subject stands
    monkeypatch.setattr(multiprocessing, "parent_process", object)
    assert file_of(frame) == collections.__file__


class _Endless:
    def keys(self):
        while True:
            pass


def test_a_limit_that_is_reached_where_draws_are_only_being_made_is_a_limit_still():
    """Its handler looks at them before they have counted anything."""
    with pytest.raises(OutOfTime, match="it was"), time_limit(0.05):
        Tape(0, _Endless())


def test_samples_have_time_left_where_paths_have_none(monkeypatch):
    """What exact checks cannot end in their share says what there is to do, and sampling does it."""

    def check(name, examine):
        found = next(check for check in CHECKS if check.name == name)
        return found._replace(examines=(of_names({"once": examine}),))

    waits = check("law_is_target", lambda *_: time.sleep(60))
    samples = check("samples_fit_law", lambda *_: Examination("the samples fit the law"))
    later = next(check for check in CHECKS if check.name == "draws_are_independent")
    monkeypatch.setattr(verify, "FOR_SAMPLES", 0.75)  # it makes the test a short one
    subject = engine_subject(lambda: [0], {(0,): 1.0}, "an engine")
    monkeypatch.setattr(verify, "warmed_up", lambda subject: subject)
    known = {"program_is_its_draws": Verdict("an engine", "program_is_its_draws", Status.HOLDS, "it is known")}
    checklist = Checklist((waits, later, samples), seconds=2.0)
    said = {verdict.check: verdict for verdict in verify_subject(subject, checklist, known=known)}
    assert re.match(r"not finished after .*; fewer tokens.* and samples need none", said["law_is_target"].statement)
    late = "not reached: the 0.5 s for the exact checks of the subject were over in law_is_target"
    assert said["draws_are_independent"].statement == late
    assert said["samples_fit_law"].status is Status.HOLDS


def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def slow_collections():
    """Collect garbage again and again, with a callback that takes a while: Python ignores what is raised in it."""

    def callback(phase, info):
        spin(0.01)

    gc.callbacks.append(callback)
    try:
        with time_limit(0.05):
            for _ in range(100):
                gc.collect(0)
                spin(0.01)
    except OutOfTime:
        return "out of time"
    finally:
        gc.callbacks.remove(callback)
    return "finished"


def ignored_in_callbacks(monkeypatch):
    """Return a list, to which each exception is appended that Python ignores in ``slow_collections``'s callback.

    Other objects of the process may have finalizers that a collection calls; no frame shows in advance that one is
    next. An exception that is lost there is raised again after a second.
    """
    ignored = []

    def hook(unraisable):
        if getattr(unraisable.object, "__qualname__", "") == "slow_collections.<locals>.callback":
            ignored.append(unraisable)

    monkeypatch.setattr(sys, "unraisablehook", hook)
    return ignored


def test_an_exception_is_not_raised_where_python_ignores_it(monkeypatch):
    ignored = ignored_in_callbacks(monkeypatch)
    assert slow_collections() == "out of time"
    assert in_another_thread(slow_collections) == "out of time"
    assert not ignored


def test_a_thread_that_has_moved_since_it_was_seen_is_seen_again(monkeypatch):
    """The description of the place takes so long here that the callback and the code around it exchange places."""

    def slow_place(frame):
        time.sleep(0.01)
        return place_of_frame(frame)

    ignored = ignored_in_callbacks(monkeypatch)
    monkeypatch.setattr(limit, "place_of_frame", slow_place)
    for _ in range(10):
        assert in_another_thread(slow_collections) == "out of time"
    assert not ignored
