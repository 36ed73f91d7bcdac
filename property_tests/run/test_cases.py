"""Cases are counted while they run."""

from __future__ import annotations

import time

from specverify.checks import check_named
from specverify.checks.check import of_names
from specverify.run.cases import counted_cases, number_of_cases


def test_cases_are_told_now_and_then_and_counted_where_they_take_long(monkeypatch):
    seconds = iter(range(100))
    monkeypatch.setattr(time, "perf_counter", lambda: 0.4 * next(seconds))
    told = []
    cases = counted_cases((item for item in range(20)), lambda: 20, lambda *done: told.append(done))
    assert list(cases) == list(range(20))
    assert told == [(1, 0), (3, 0), (5, 0), (7, 0), (9, 0), (11, 0), (13, 20), (15, 20), (17, 20), (19, 20)]


def test_cases_that_fail_to_be_counted_are_not_counted():
    def situations(_):
        yield None
        raise ValueError("the second case cannot be made")

    check, seven = check_named("law_is_target"), of_names(dict.fromkeys(map(str, range(7))))
    assert number_of_cases("any", check._replace(examines=(seven,))) == 7
    assert number_of_cases("any", check._replace(examines=(seven._replace(within=situations),))) == 0
