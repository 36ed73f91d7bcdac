"""A replay shows another time to a program that holds its clock in any place, also behind ``gc.freeze``."""

# ruff: noqa: NPY002, PLW0108 - verifiers draw so; a name that is inlined would be read once, not at each call

from __future__ import annotations

import gc
import time
from datetime import datetime
from functools import partial
from types import BuiltinFunctionType, SimpleNamespace

import numpy as np
import pytest

from specverify.intercept.cpython.frozen import keep_out
from specverify.intercept.cpython.sandbox import elsewhen, look_around
from specverify.intercept.run import PROCESS
from specverify.testing import SpeculationUndecided, check_verifier

DAY = 80_000.0


class _Held:
    def __init__(self, clock):
        self.clock = clock


class _InSlots:
    __slots__ = ("clock",)

    def __init__(self, clock):
        self.clock = clock


class _OfRich(_Held):
    __module__ = "rich.progress"


def in_the_attribute_of_an_object():
    held = _Held(time.time)
    return lambda: held.clock()


def in_a_slot():
    held = _InSlots(time.time)
    return lambda: held.clock()


def in_a_namespace():
    held = SimpleNamespace(clock=time.time)
    return lambda: held.clock()


def in_a_closure():
    clock = time.time
    return lambda: clock()


def in_a_default():
    def read(clock=time.time):
        return clock()

    return read


def in_a_list():
    held = [time.time]
    return lambda: held[0]()


def in_a_dictionary():
    held = {"clock": time.time}
    return lambda: held["clock"]()


def in_a_partial_function():
    return partial(time.time)


def in_a_static_method():
    class Engine:
        clock = staticmethod(time.time)

    return lambda: Engine.clock()


def as_a_method_of_the_calendar():
    held = _Held(datetime.now)
    return lambda: held.clock().timestamp()


PLACES = [
    as_a_method_of_the_calendar,
    in_the_attribute_of_an_object,
    in_a_slot,
    in_a_namespace,
    in_a_closure,
    in_a_default,
    in_a_list,
    in_a_dictionary,
    in_a_partial_function,
    in_a_static_method,
]


@pytest.mark.parametrize("made", PLACES)
def test_a_clock_is_moved_wherever_it_is_held(made):
    read = made()
    look_around()
    with elsewhen(3):
        moved = read()
    assert abs(moved - read()) > DAY, "outside it shows the real time again"


@pytest.fixture
def frozen_as_before(monkeypatch):
    """Leave as many objects frozen behind a test as before it: in the thorough run, none."""
    monkeypatch.setattr(PROCESS, "keeps_out", PROCESS.keeps_out)
    was_frozen = gc.get_freeze_count() > 0
    yield
    gc.unfreeze()
    if was_frozen:
        keep_out()


@pytest.fixture
def freezes(monkeypatch, frozen_as_before):
    """Search as in the process of a user, whose engine freezes what it has loaded."""
    monkeypatch.setattr(PROCESS, "keeps_out", False)
    return gc.freeze


def test_clocks_are_found_in_what_an_engine_has_frozen(freezes):
    """All places are searched at once: what is frozen are the tests themselves, too."""
    places = {made.__name__: made() for made in PLACES}
    freezes()
    look_around()
    assert gc.get_freeze_count() > 0, "it is frozen again"
    with elsewhen(3):
        moved = {name: read() for name, read in places.items()}
    assert [name for name, read in places.items() if abs(moved[name] - read()) <= DAY] == []


class _OnSomeDays:
    """A verifier that tests its drafts on days like the first one alone."""

    def __init__(self, clock):
        self.clock = clock
        self.first = self._day()

    def _day(self):
        return int(self.clock() / 86_400) % 2

    def __call__(self, p, q, draft_tokens):
        for place, token in enumerate(draft_tokens):
            if self._day() == self.first and np.random.random() * q[place, token] >= p[place, token]:
                left = np.maximum(p[place] - q[place], 0)
                left = left if left.any() else p[place]
                return [*draft_tokens[:place], np.random.choice(len(left), p=left / left.sum())]
        return [*draft_tokens, np.random.choice(p.shape[1], p=p[-1])]


def test_a_verifier_that_is_right_on_some_days_does_not_hold(freezes):
    made = _OnSomeDays(time.time)
    freezes()
    with pytest.raises(SpeculationUndecided, match="not a function of the draws"):
        check_verifier(made, quick=True)


@pytest.mark.usefixtures("frozen_as_before")
def test_what_tests_keep_out_is_not_searched():
    read = in_the_attribute_of_an_object()
    keep_out()
    look_around()
    with elsewhen(3):
        assert abs(read() - time.time()) < DAY


def test_a_clock_of_an_object_that_shows_durations_is_left():
    kept, moved = _OfRich(time.time), _Held(time.time)
    look_around()
    with elsewhen(3):
        assert isinstance(kept.clock, BuiltinFunctionType)
        assert not isinstance(moved.clock, BuiltinFunctionType)
    assert moved.clock is kept.clock


def test_a_search_lets_go_of_the_objects_of_the_search_before():
    held = _Held(time.time)
    look_around()
    assert any(place.look() is time.time for place, _ in PROCESS.clocks)
    size = len(PROCESS.clocks)
    del held
    look_around()
    assert len(PROCESS.clocks) < size
