"""Tests of drafts that accept if a uniform is above its bound, as ``u > 1 - p/q`` does."""

from __future__ import annotations

import random

import pytest

from property_tests.checks.explaining.test_causes_of_engines import DRAFT, TARGET, message, plain, positive
from property_tests.checks.explaining.test_round_faults import choose
from specverify.checks.explaining.draft_tests import DraftTest
from specverify.testing import check_engine
from test_support.checks.recorded_rounds import coin

LENGTH = 2


def discarding(bound=lambda p, q: 1 - p / q, replace=positive):
    """Return new tokens of an engine with one draft a round, rejected if a uniform is below ``bound(p, q)``."""
    new = [0]
    while len(new) <= LENGTH:
        p, q = TARGET[new[-1]], DRAFT[new[-1]]
        draft = choose(q)
        if random.random() <= bound(p[draft], q[draft]):
            new.append(choose(replace(p, q)))
        else:
            new.append(draft)
    return new[1:]


@pytest.mark.parametrize("above", [True, False])
def test_a_comparison_is_described_as_the_program_makes_it(above):
    tested = DraftTest(coin(0.25, 1.0), upside_down=above)
    assert tested.accepts == above
    assert tested.probability == (0.75 if above else 0.25)
    ought = "0.5 = 1 - min(1, p/q)" if above else "0.5 = min(1, p/q)"
    assert tested.words(0.5) == f"u >= 0.25, e.py:2; expected {ought}"


def test_a_wrong_bound_above_which_drafts_are_accepted_is_named():
    said = message(lambda: discarding(lambda p, q: max(q - p, 0)), lambda length: plain(length=LENGTH)).splitlines()
    assert "drafts are accepted with probability 1 - max(q - p, 0), expected min(1, p/q): draft 1" in said[0]


def test_a_wrong_replacement_behind_such_a_test_is_named():
    said = message(lambda: discarding(replace=lambda p, q: p), lambda length: plain(length=LENGTH)).splitlines()
    assert "a rejected draft is replaced by a draw from p, expected norm(max(p - q, 0))" in said[0]


def test_an_engine_with_such_tests_holds():
    check_engine(discarding, lambda: plain(length=LENGTH), checks=["law_is_target"])
