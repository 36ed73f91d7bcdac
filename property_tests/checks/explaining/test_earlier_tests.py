"""Messages name the end of an earlier test if a token is wrong only after it, and show such paths."""

from __future__ import annotations

import random
import re

import pytest

from property_tests.checks.explaining.test_engine_paths import TARGET
from property_tests.checks.explaining.test_round_faults import choose
from specverify.checks.explaining.earlier_tests import only_after, wrong_after_tests
from specverify.checks.explaining.engine_paths import KeptPaths
from specverify.checks.explaining.first_difference import first_difference
from specverify.intercept.everywhere import answered_everywhere
from specverify.laws.enumeration import program_law
from specverify.testing import SpeculationRefuted, check_engine

LENGTH = 3
PLACE = r"test_earlier_tests.py:\d+"


def without_repetition(last):
    """Return the target's row after ``last``, in which a mask excludes ``last``."""
    row = [0.0 if token == last else mass for token, mass in enumerate(TARGET[last])]
    return tuple(mass / sum(row) for mass in row)


def masked(forgets):
    """Return new tokens of an engine that leaves the mask out of the rows of a round if ``forgets(ends)``.

    ``ends`` tells for the earlier rounds whether the draft was accepted.
    """
    new, ends = [0], []
    while len(new) <= LENGTH:
        drafts = [(new[-1] + 1) % 3, (new[-1] + 2) % 3][: LENGTH + 1 - len(new)]
        rows = [TARGET[last] if forgets(ends) else without_repetition(last) for last in range(3)]
        for draft in drafts:
            p = rows[new[-1]]
            ends.append(random.random() < p[draft])
            new.append(draft if ends[-1] else choose([0.0 if token == draft else p[token] for token in range(3)]))
            if not ends[-1]:
                break
        else:
            new += [choose(rows[new[-1]])] if len(new) <= LENGTH else []
    return new[1:]


def plain():
    new = [0]
    for _ in range(LENGTH):
        new.append(choose(without_repetition(new[-1])))
    return new[1:]


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(
    ("forgets", "said"),
    [
        (lambda ends: False in ends, "; wrong only after a failed test (u >= its bound, test_earlier_tests.py:"),
        (lambda ends: True in ends, "; wrong only after a passed test (u < its bound, test_earlier_tests.py:"),
        (lambda ends: True, ""),
    ],
    ids=["after a rejection", "after an acceptance", "always"],
)
def test_the_earlier_test_on_which_a_wrong_token_depends_is_named(forgets, said):
    with pytest.raises(SpeculationRefuted) as raised:
        check_engine(lambda: masked(forgets), plain, checks=["law_is_target"])
    first = str(raised.value).splitlines()[0]
    assert "as if no mask, top-k or top-p excluded it" in first
    assert ("; wrong only after" in first) == bool(said)
    assert said in first


@pytest.mark.parametrize(("after_failure", "certain"), [((0, 1, 0), ": it is then always 1"), ((0.5, 0.5, 0), "")])
def test_a_token_that_is_always_the_same_after_a_failed_test_is_stated(after_failure, certain):
    """Draft 0 is replaced by 2 if its test fails; a draft 2 needs no test."""
    second = (0.25, 0.75, 0)

    def run(draws):
        with answered_everywhere(draws):
            draft = choose((0.75, 0, 0.25))
            is_failed = draft == 0 and not random.random() < 2 / 3
            return (2 if is_failed else draft, choose(after_failure if is_failed else second))

    expected = {(first, token): mass / 2 for first in (0, 2) for token, mass in enumerate(second) if mass}
    difference = first_difference(program_law(run).probabilities, expected)
    said = only_after(KeptPaths(run), difference, expected)
    assert re.fullmatch(rf"; wrong only after a failed test \(u >= its bound, {PLACE}\){certain}", said)


Q, P = (0.4, 0.4, 0.2), ((0.2, 0.5, 0.3), (0.6, 0.3, 0.1), (0.5, 0.2, 0.3))


def second_from(row):
    """Return whether a draft is accepted, and two tokens; the second is drawn from ``P[row(draft, first)]``."""
    draft = choose(Q)
    first = draft
    if random.random() * Q[draft] >= P[0][draft]:
        first = choose([max(p - q, 0.0) for p, q in zip(P[0], Q, strict=True)])
    return draft == first, (first, choose(P[row(draft, first)]))


@pytest.mark.parametrize(
    ("row", "on"), [(lambda draft, first: draft, {False}), (lambda draft, first: 0, set())], ids=["stale row", "always"]
)
def test_the_paths_of_a_token_that_is_wrong_after_some_draws_alone_are_found(row, on):
    def told(draws):
        with answered_everywhere(draws):
            return second_from(row)

    def run(draws):
        return told(draws)[1]

    accepts = {path.choices: path.outcome[0] for path in KeptPaths(told)}
    expected = {(first, second): P[0][first] * P[first][second] for first in range(3) for second in range(3)}
    difference = first_difference(program_law(run).probabilities, expected)
    assert {accepts[choices] for choices in wrong_after_tests(KeptPaths(run), difference, expected)} == on
