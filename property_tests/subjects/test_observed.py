"""Engines that are looked into while they run: what has too many runs is refused in words, and followed once."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

from specverify.checks._observed import MOST_RUNS, seen_in
from specverify.laws.enumeration import EnumerationTooLarge
from specverify.subjects.subject import Observed, Watched

HALF = np.array([0.5, 0.5])


def engine_of(coins, calls):
    """Return a program whose new tokens are so many coins; every run is noted in ``calls``."""

    def run(draws):
        calls.append(None)
        return Observed(tuple(draws.categorical(HALF, ("coin", place)) for place in range(coins)), ())

    @contextmanager
    def watch():
        yield Watched(run, run, prompt=(0,))

    return watch


def test_too_many_runs_are_refused_again_without_following_them_again():
    calls = []
    watch = engine_of(13, calls)
    for _ in range(3):
        with pytest.raises(EnumerationTooLarge, match=f"it has more than {MOST_RUNS} runs"):
            seen_in(watch)
    assert len(calls) == MOST_RUNS + 1


def test_what_was_seen_is_seen_once():
    calls = []
    watch = engine_of(3, calls)
    assert seen_in(watch) is seen_in(watch)
    assert len(calls) == 8 + 8
    assert sum(mass for run in seen_in(watch).runs for _, mass in run.ends) == 1
