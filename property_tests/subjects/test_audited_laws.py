"""The audit of draws during the enumeration of a law: it finds the same as alone, and no path is followed again."""

from __future__ import annotations

import random

import pytest

from specverify.base.verdict import Status
from specverify.checks import Conditions, check_named
from specverify.checks.forgetting import forget_laws
from specverify.run.verify import Checklist, run_check
from specverify.subjects.engine import engine_subject

LAW, INDEPENDENT = check_named("law_is_target"), check_named("draws_are_independent")


def fresh():
    return [random.choices(range(3), (2, 3, 5))[0] if random.random() < 0.5 else 3 for _ in range(3)]


def one_uniform_twice():
    u = random.random()
    return [int(u < 0.5), int(u < 0.25), int(u < 0.75)]


def two_together_and_one_alone():
    u, v = random.random(), random.random()
    return [int(u + v < 1), int(u < 0.5)]


def verdicts(decode, *checks, paths=1000, between=lambda: None):
    """Return the verdict of each check on one subject, and how many runs the last one made."""
    runs = []

    def counted():
        runs.append(decode)
        return decode()

    forget_laws()
    subject, found = engine_subject(counted, decode, "engine"), []
    for check in checks:
        between()
        runs.clear()
        found.append(run_check(subject, check, Checklist((check,), Conditions(paths=paths))))
    return found, len(runs)


SAID = {
    fresh: (Status.HOLDS, "nothing is used twice in"),
    one_uniform_twice: (Status.UNKNOWN, "and the law is what was promised. It may do harm, here or with other models"),
    two_together_and_one_alone: (Status.UNKNOWN, "whether that is one decision cannot be determined"),
}


@pytest.mark.parametrize("decode", SAID, ids=lambda decode: decode.__name__)
def test_it_says_what_it_says_alone(decode):
    (law, after), again = verdicts(decode, LAW, INDEPENDENT)
    (alone,), _ = verdicts(decode, INDEPENDENT)
    status, sentence = SAID[decode]
    assert law.status is Status.HOLDS
    assert (after.status, after.statement, after.figures) == (alone.status, alone.statement, alone.figures)
    assert after.counterexample is None or after.counterexample[:3] == alone.counterexample[:3]
    assert after.status is status
    assert sentence in after.statement
    assert (again == 0) == (status is Status.HOLDS)


def test_a_law_of_more_paths_than_are_asked_for_is_not_enough():
    (_, after), again = verdicts(fresh, LAW, INDEPENDENT, paths=20)
    (alone,), _ = verdicts(fresh, INDEPENDENT, paths=20)
    assert again > 0
    assert (after.statement, after.figures) == (alone.statement, alone.figures)


def test_it_is_forgotten_with_the_law():
    _, again = verdicts(fresh, LAW, INDEPENDENT, between=forget_laws)
    assert again > 0
