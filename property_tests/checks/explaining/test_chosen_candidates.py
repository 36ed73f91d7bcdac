"""The rule of an engine that tests several candidates for one position, which no draw chooses."""

from __future__ import annotations

import random

import pytest

from specverify.report.prose import first_sentence
from specverify.testing import check_engine
from test_support.subjects.engine_laws import probe_verdict


def scaled(row):
    return [mass / sum(row) for mass in row] if sum(row) > 0 else row


def drawn(p, number, fault):
    """Return a token of ``p`` after tests of its ``number`` most probable tokens, by a rule with ``fault``, or ""."""
    left = p
    for token in sorted(range(len(p)), key=lambda token: -p[token])[:number]:
        if random.random() < left[token]:
            return token
        rest = [0.0 if other == token else mass for other, mass in enumerate(left)]
        left = rest if fault == "not divided" or sum(rest) == 0 else scaled(rest)
    row = p if fault == "drawn from p" else left
    return random.choices(range(len(row)), weights=row)[0]


def engine(number, fault):
    """Return the factory of an engine without a draft model, which tests the ``number`` most probable tokens."""

    def make(scenario):
        def decode(prompt):
            new = ()
            while len(new) < scenario.horizon:
                new += (drawn([float(mass) for mass in scenario.target(prompt + new)], number, fault),)
            return new

        return decode

    return make


def first_line(make):
    return first_sentence(probe_verdict(make))


NOT_DIVIDED = "the residual after a rejected candidate is not divided by its sum: after candidate 1 (0) is rejected"
FROM_P = "the token after the last rejected candidate is drawn from p, not from the residual"


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(
    ("number", "fault", "said"),
    [(2, "not divided", NOT_DIVIDED), (3, "not divided", NOT_DIVIDED), (2, "drawn from p", FROM_P)],
)
def test_a_wrong_rule_of_several_candidates_is_named(number, fault, said):
    assert first_line(engine(number, fault)).startswith(said)


def test_a_rule_of_one_candidate_is_not_told_as_one_of_several():
    assert "rejected candidate" not in first_line(engine(1, "drawn from p"))


def test_the_right_rule_holds():
    check_engine(engine(3, ""), quick=True, checks=["law_is_target"])
