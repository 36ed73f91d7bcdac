"""Trees verified decision by decision, as narrated.py tells."""

from __future__ import annotations

import pytest

from reference import Draft, Verified
from reference.transport import candidate_set_law, optimal_plan
from reference.tree_rounds import Step
from reference.verifiers.candidate_set import candidate_set, sample_and_look_up
from reference.verifiers.optimal_transport import optimal_transport
from reference.verifiers.recursive_rejection import recursive_rejection, try_in_turn
from reference.verifiers.traversal import traversal
from test_support.laws.rational import P, Q, pmf
from test_support.reference.narrated import BONUS, LAST, OUTER, SECOND, THIRD, TO_THE_END, Done, coin, played

TALL, HALVES = pmf(".1", ".5", ".4"), pmf(0, ".5", ".5")
SIBLINGS = Draft((0, 1), (-1, -1), (Q, Q))
"""Two candidates for one position, both drawn from Q."""
BRANCH = Draft((0, 1, 1), (-1, -1, 0), (Q, HALVES, None))
"""Two candidates of two laws, and a point mass below the first."""


def trees():
    """Return name -> (setting, what it does); made anew in every test."""
    every_set = candidate_set_law(Q, 2, replacement=True)
    plan = optimal_plan(TALL, every_set)
    both = frozenset({0, 1})
    choices = [plan.accepted[both].get(token, 0) / every_set[both] for token in range(3)]
    return {
        "recursive rejection, a path accepted": (
            (recursive_rejection, BRANCH, (0, 0, 2)),
            ((("accept", 0, 0), coin("1/6")), (("accept", 1, 0), coin("1/2")), BONUS),
            TO_THE_END,
            Verified((0, 1, 2), 2),
        ),
        "recursive rejection, rejected below": (
            (recursive_rejection, BRANCH, (0, 1, 2)),
            (
                (("accept", 0, 0), coin("1/6")),
                (("accept", 1, 0), coin("1/2")),
                (("residual", 1), OUTER),
            ),
            ((), (0,)),
            Verified((0, 2), 1),
        ),
        "recursive rejection, the second accepted": (
            (recursive_rejection, BRANCH, (1, 0, 2)),
            ((("accept", 0, 0), coin("1/6")), (("accept", 0, 1), coin("4/5")), BONUS),
            ((), (1,)),
            Verified((1, 2), 1),
        ),
        "recursive rejection, both rejected": (
            (recursive_rejection, BRANCH, (1, 1, 2)),
            ((("accept", 0, 0), coin("1/6")), (("accept", 0, 1), coin("4/5")), (("residual", 0), LAST)),
            ((),),
            Verified((2,), 0),
        ),
        "a plan, the second chosen": (
            (optimal_transport(replacement=True), SIBLINGS, (1, 2)),
            ((("choose", 0), [*choices, 1 - sum(choices)]), BONUS),
            ((), (1,)),
            Verified((1, 2), 1),
        ),
        "candidates, a path met": (
            (candidate_set, BRANCH, (0, 1, 2)),
            ((("target", 0), TALL.tolist()), (("target", 1), SECOND.tolist()), BONUS),
            TO_THE_END,
            Verified((0, 1, 2), 2),
        ),
        "candidates, missed": (
            (candidate_set, BRANCH, (2,)),
            ((("target", 0), TALL.tolist()),),
            ((),),
            Verified((2,), 0),
        ),
        "traversal, the whole path": (
            (traversal, BRANCH, (0, 2)),
            ((("accept", 2), coin("1/12")), (("bonus", 2), THIRD.tolist())),
            TO_THE_END,
            Verified((0, 1, 2), 2),
        ),
        "traversal, the inner node": (
            (traversal, BRANCH, (1, 0, 2)),
            ((("accept", 2), coin("1/12")), (("accept", 0), coin("1/11")), (("bonus", 0), OUTER)),
            TO_THE_END,
            Verified((0, 2), 1),
        ),
        "traversal, the second child": (
            (traversal, BRANCH, (1, 1, 0, 2)),
            (
                (("accept", 2), coin("1/12")),
                (("accept", 0), coin("1/11")),
                (("accept", 1), coin("4/5")),
                (("bonus", 1), THIRD.tolist()),
            ),
            ((), (0,), (0, 1), (1,)),
            Verified((1, 2), 1),
        ),
        "traversal, nothing": (
            (traversal, BRANCH, (1, 1, 1, 2)),
            (
                (("accept", 2), coin("1/12")),
                (("accept", 0), coin("1/11")),
                (("accept", 1), coin("4/5")),
                (("bonus", -1), LAST),
            ),
            ((), (0,), (0, 1), (1,)),
            Verified((2,), 0),
        ),
    }


@pytest.mark.parametrize("name", trees())
def test_a_tree_is_verified_decision_by_decision(name):
    setting, *expected = trees()[name]
    assert played(TALL, *setting) == Done(*expected)


class Kept:
    """Answers outcomes in order and keeps the arrays that it was asked with."""

    def __init__(self, outcomes):
        """``outcomes[i]`` answers the i-th draw."""
        self.outcomes, self.asked = list(outcomes), []

    def categorical(self, pmf, *_):
        """Return the next outcome, whatever the pmf."""
        self.asked.append(pmf)
        return self.outcomes[len(self.asked) - 1]


# K-SEQ and its precision


def test_a_rule_for_one_position_says_whether_its_token_was_a_candidate():
    assert try_in_turn(Kept([0]), P, (0,), (Q,), 0) == Step(0, accepted=True)
    assert try_in_turn(Kept([1, 2]), P, (0,), (Q,), 0) == Step(2, accepted=False)
    assert [sample_and_look_up(Kept([token]), P, (0, 1), (Q, Q), 0).accepted for token in range(3)] == [
        True,
        True,
        False,
    ]
