"""Uniform numbers that were put in order, and one of them then compared with a number: its law is that of its place."""

from __future__ import annotations

import heapq
import random
import statistics

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.intercept.refusals import NeedsValue
from specverify.laws.scenarios import SCENARIOS
from specverify.run.verify import Checklist, run_check
from specverify.subjects.verifier import verifier_subject
from test_support.intercept.answered_laws import law_of

RNG = np.random.default_rng(0)


def u():
    return random.random()


@pytest.mark.parametrize(
    ("value", "below"),
    [
        (lambda: max(u(), u()), 0.3**2),
        (lambda: min(u(), u()), 1 - 0.7**2),
        (lambda: max(u(), u(), u()) ** 3, 0.3),
        (lambda: sorted([u(), u(), u()])[1], 0.3**3 + 3 * 0.3**2 * 0.7),
        (lambda: sorted([u(), u(), u()], reverse=True)[2], 1 - 0.7**3),
        (lambda: statistics.median([u(), u(), u()]), 0.3**3 + 3 * 0.3**2 * 0.7),
        (lambda: heapq.nsmallest(2, [u() for _ in range(4)])[1], 1 - 0.7**4 - 4 * 0.3 * 0.7**3),
        (lambda: np.sort(RNG.random(3))[1], 0.3**3 + 3 * 0.3**2 * 0.7),
        (lambda: np.median(RNG.random(3)), 0.3**3 + 3 * 0.3**2 * 0.7),
        (lambda: min(random.expovariate(1.0), random.expovariate(1.0)), 1 - np.exp(-0.6)),
    ],
)
def test_the_law_is_that_of_its_place(value, below):
    assert law_of(lambda: bool(value() < 0.3))[True] == pytest.approx(below, abs=1e-12)


def test_it_is_asked_again_given_what_it_answered():
    def program():
        middle = sorted([u(), u(), u()])[1]
        return bool(middle < 0.5), bool(middle < 0.3)

    found = law_of(program)
    assert found == pytest.approx({(True, True): 0.216, (True, False): 0.284, (False, False): 0.5}, abs=1e-12)


def test_one_of_two_that_were_compared_keeps_what_hangs_together():
    def program():
        one, other = u(), u()
        return bool(one < other), bool(one < 0.5)

    found = law_of(program)
    assert found == pytest.approx(
        {(True, True): 3 / 8, (True, False): 1 / 8, (False, True): 1 / 8, (False, False): 3 / 8}, abs=1e-12
    )


@pytest.mark.parametrize(
    "program",
    [
        lambda found: found[0] < 0.3 and found[2] < 0.5,
        lambda found: found[1] < 0.3 and found[1] < u() and max(found[0], found[2]) < 0.4,
    ],
)
def test_two_places_of_one_order_are_not_told(program):
    with pytest.raises(NeedsValue):
        law_of(lambda: bool(program(sorted([u(), u(), u()]))))


def replaced(p, q, draft_tokens, keeps):
    for i, token in enumerate(draft_tokens):
        if not keeps(p[i, token] / q[i, token]):
            left = np.maximum(p[i] - q[i], 0)
            return [*draft_tokens[:i], random.choices(range(len(left)), left if left.any() else p[i])[0]]
    return [*draft_tokens, random.choices(range(p.shape[1]), p[-1])[0]]


def said(keeps, check):
    subject = verifier_subject(lambda p, q, draft_tokens: replaced(p, q, draft_tokens, keeps), "a verifier", (1,))
    few = [each for each in SCENARIOS if (each.shape, each.vocabulary) == ("generic", 3) and not each.eos]
    most = 3 if check == "law_is_target" else 9
    subject = subject._replace(scenarios=tuple(each for each in few if each.horizon <= most), deep=tuple)
    return run_check(subject, check_named(check), Checklist(())).status


@pytest.mark.thorough
def test_the_larger_of_two_is_one_number_and_used_once():
    assert said(lambda ratio: max(u(), u()) ** 2 < ratio, "draws_are_independent") is Status.HOLDS
    assert said(lambda ratio: max(u(), u()) ** 2 < ratio, "law_is_target") is Status.HOLDS
    assert said(lambda ratio: max(u(), u()) < ratio, "law_is_target") is Status.REFUTED


def test_one_that_is_the_larger_here_and_the_smaller_there_is_not_told():
    def keeps(ratio):
        one, other = u(), u()
        heads = one < other
        return ratio >= 1 or (one < 0.5) == heads

    assert said(keeps, "draws_are_independent") is Status.UNKNOWN
