"""Engines that are looked into while they run: what has too many runs is refused in words, and followed once."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.checks.observed_runs import MOST_RUNS, seen_in
from specverify.laws.enumeration import EnumerationTooLarge
from specverify.run.verify import Checklist, run_check
from specverify.subjects.subject import EngineProgram, Forward, Observed, Subject, Watched

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


def emits_a_fair_draft(shown=lambda draft: (((0,), (0, draft)),)):
    """Return a run that drafts a fair coin, tells what was ``shown``, and emits the draft."""

    def run(draws):
        draft = draws.categorical(HALF, ("draft",))
        return Observed((draft,), (Forward(0, (0, draft)),), shown(draft))

    return run


def verdict_of(check, law=None, run=None):
    """Return what a check says of an engine that promises a fair coin, or ``law``, and keeps to it, or runs so."""
    followed = run or emits_a_fair_draft()

    @contextmanager
    def watch():
        yield Watched(followed, followed, prompt=(0,))

    promised = law or {(0,): 0.5, (1,): 0.5}
    program = EngineProgram("a coin", open=None, law=lambda: promised, watch=watch)
    subject = Subject("a coin", "", frozenset(), rational=False, situations=(program,))
    return run_check(subject, check_named(check), Checklist(()))


@pytest.mark.parametrize(
    ("apart", "status"), [(0.0, Status.HOLDS), (3e-6, Status.UNKNOWN), (1e-4, Status.REFUTED)], ids=str
)
def test_an_acceptance_that_rounding_might_explain_neither_holds_nor_is_refuted(apart, status):
    found = verdict_of("acceptance_law", {(0,): 0.5 + apart, (1,): 0.5 - apart})
    assert found.status is status, found.statement
    assert ("may be rounding" in found.statement) is (status is Status.UNKNOWN)


@pytest.mark.parametrize(
    ("shown", "status"),
    [
        (lambda draft: (((0,), (0, draft)),), Status.HOLDS),
        (lambda draft: (((0,), (0,)),), Status.REFUTED),
        (lambda draft: (), Status.UNKNOWN),
    ],
    ids=["its prefix", "a row before", "nothing"],
)
def test_what_processors_are_shown_is_judged_only_where_it_is_told(shown, status):
    assert verdict_of("processors_see_their_prefix", run=emits_a_fair_draft(shown)).status is status


RARE = 2.0**-30


def rarely_accepts(rate):
    """Return a run whose first token is rarely 1, and which then drafts a 1 and accepts it at ``rate``."""

    def run(draws):
        first = draws.categorical(np.array([1 - RARE, RARE]), ("target",))
        if first == 0:
            return Observed((0, 0), (Forward(0, (0,)),), ())
        second = 1 - draws.categorical(np.array([rate, 1 - rate]), ("accept",))
        return Observed((1, second), (Forward(0, (0,)), Forward(1, (1, 1))), ())

    return run


@pytest.mark.parametrize(("rate", "status"), [(0.5, Status.HOLDS), (0.25, Status.REFUTED)], ids=str)
def test_a_draft_is_judged_however_rarely_it_is_reached(rate, status):
    law = {(0, 0): 1 - RARE, (1, 0): RARE / 2, (1, 1): RARE / 2}
    assert verdict_of("acceptance_law", law, rarely_accepts(rate)).status is status


def test_a_draft_where_the_promised_law_never_is_is_left_to_the_law():
    assert verdict_of("acceptance_law", {(0, 0): 1.0}, rarely_accepts(0.25)).status is Status.HOLDS
