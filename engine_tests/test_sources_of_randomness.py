"""Every source of randomness, in a right engine and in a wrong one: no right one is refuted, no wrong one holds."""

from __future__ import annotations

import pytest
from sources_of_randomness import HIDDEN, SOURCES

from specverify.testing import check_engine
from specverify.verdict import Status

RIGHT, WRONG = 0.9, 0.6


def verdicts(make, p):
    coin, plain = make(p), make(RIGHT)
    found = check_engine(lambda: [int(coin())], lambda: [int(plain())], on_fail=None)
    return {verdict.check: verdict for verdict in found}


@pytest.mark.parametrize("source", SOURCES)
def test_what_is_answered_has_an_exact_law(source):
    right, wrong = (verdicts(SOURCES[source], p)["law_is_target"] for p in (RIGHT, WRONG))
    assert (right.status, wrong.status) == (Status.HOLDS, Status.REFUTED), (right.statement, wrong.statement)


@pytest.mark.parametrize("source", HIDDEN)
def test_what_cannot_be_answered_is_unknown_and_named(source):
    for p in (RIGHT, WRONG):
        found = verdicts(HIDDEN[source], p)
        assert found["law_is_target"].status is Status.UNKNOWN, found["law_is_target"].statement
        assert Status.REFUTED not in {verdict.status for verdict in found.values()}
