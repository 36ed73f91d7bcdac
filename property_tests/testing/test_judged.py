"""The time limit of a judged subject."""

from __future__ import annotations

import pytest

from specverify.testing.judged import examined, offered
from specverify.testing.plans import Plan


@pytest.mark.parametrize(
    ("how", "share", "seconds"),
    [({"timeout": 900.0}, {}, 900.0), ({}, {}, 600.0), ({"timeout": 900.0}, {"timeout": 700.0}, 700.0)],
)
def test_a_limit_longer_than_the_usual_one_is_kept_where_no_share_of_a_run_is_shorter(how, share, seconds):
    given = []
    plan = Plan("a plan", (), lambda names, limit, known: [given.append(limit)][:0], how)
    token = offered.set(share)
    try:
        assert not list(examined(plan, (), {}))
    finally:
        offered.reset(token)
    assert given == [seconds]
