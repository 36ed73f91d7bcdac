"""Trees verified decision by decision, as narrated.py tells."""

from __future__ import annotations

import numpy as np
import pytest

from reference import Draft, Verified, accept_probability, chain
from reference.transport import candidate_set_law, optimal_plan
from reference.tree_rounds import Step
from reference.verifiers.candidate_set import candidate_set, sample_and_look_up
from reference.verifiers.k_seq import acceptance, k_seq, least_rho, leftover
from reference.verifiers.optimal_transport import optimal_transport
from reference.verifiers.recursive_rejection import recursive_rejection, try_in_turn
from reference.verifiers.traversal import traversal
from test_support.laws.rational import P, Q, always, law_of, pmf
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


def test_k_seq_asks_one_coin_a_candidate():
    rho = least_rho(P, Q, 2, 1)
    coins = tuple((("accept", 0, k), coin(accept_probability(P, rho * Q, k))) for k in range(2))
    last = (("residual", 0), leftover(P, Q, rho, 2).tolist())
    assert played(P, k_seq(1), SIBLINGS, (1, 1, 2)) == Done((*coins, last), ((),), Verified((2,), 0))


def test_a_plan_that_chooses_none_emits_what_the_target_is_owed():
    """Of two draws from Q the target (1/10, 3/20, 3/4) accepts too little of the last token."""
    target = pmf(".1", ".15", ".75")
    done = played(target, optimal_transport(replacement=True), SIBLINGS, (3, 2))
    assert [site for site, _ in done.decisions] == [("choose", 0), ("residual", 0)]
    assert done.decisions[1][1] == LAST
    assert done.verified == Verified((2,), 0)


class Kept:
    """Answers outcomes in order and keeps the arrays that it was asked with."""

    def __init__(self, outcomes):
        """``outcomes[i]`` answers the i-th draw."""
        self.outcomes, self.asked = list(outcomes), []

    def categorical(self, pmf, *_):
        """Return the next outcome, whatever the pmf."""
        self.asked.append(pmf)
        return self.outcomes[len(self.asked) - 1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, object])
def test_a_plan_draws_from_arrays_of_the_targets_type(dtype):
    row, draws = np.array(P, dtype=dtype), Kept([3, 2])
    verify = optimal_transport(replacement=True)
    assert verify(draws, always(row), (), SIBLINGS._replace(pmfs=(Q.astype(dtype),) * 2)).accepted == 0
    assert [asked.dtype for asked in draws.asked] == [dtype, dtype]


def test_a_plan_that_rounding_leaves_a_rejection_and_nothing_owed_emits_from_the_target():
    """For p = q every draft stays; in float64 its share can be an epsilon below 1."""
    weights, draws = np.array([0.6, 0.5, 0.3]), Kept([3, 2])
    row = weights / weights.sum()
    draft = Draft((0,), (-1,), (row,))
    assert optimal_transport(replacement=False)(draws, always(row), (), draft) == Verified((2,), 0)
    assert 0 < draws.asked[0][3] < 1e-15
    assert draws.asked[1].tolist() == row.tolist()


@pytest.mark.parametrize("replacement", [True, False])
def test_a_plan_for_one_token_accepts_it(replacement):
    one = pmf(1)
    verify = optimal_transport(replacement)
    assert law_of(lambda draws: verify(draws, always(one), (), chain((0,), (one,)))) == {Verified((0, 0), 1): 1}


# K-SEQ and its precision


def test_candidates_of_equal_laws_may_hold_them_in_two_arrays():
    settings = [(k_seq(2), SIBLINGS._replace(pmfs=pmfs), (1, 0, 2)) for pmfs in ((Q, Q), (Q, Q.copy()))]
    assert played(P, *settings[0]) == played(P, *settings[1])


def test_the_precision_of_rho_is_sixteen_bits_and_that_of_the_rate_forty_unless_told_otherwise():
    three = Draft((0, 1, 2), (-1,) * 3, (Q,) * 3)
    first, finer = (coin(accept_probability(P, least_rho(P, Q, 3, bits) * Q, 0)) for bits in (16, 17))
    assert played(P, k_seq(), three, (0, 2)).decisions[0] == (("accept", 0, 0), first) != (("accept", 0, 0), finer)
    assert acceptance(P, Q, 2) == acceptance(P, Q, 2, 40) != acceptance(P, Q, 2, 41)


@pytest.mark.parametrize("count", [2, 3])
def test_rho_is_found_in_floats_as_in_fractions(count):
    """Bisection meets dyadic numbers alone, which are exact in float64."""
    found = least_rho(P.astype(float), Q.astype(float), count, 16)
    assert type(found) is float
    assert found == least_rho(P, Q, count, 16) > 1


def test_a_rule_for_one_position_says_whether_its_token_was_a_candidate():
    assert try_in_turn(Kept([0]), P, (0,), (Q,), 0) == Step(0, accepted=True)
    assert try_in_turn(Kept([1, 2]), P, (0,), (Q,), 0) == Step(2, accepted=False)
    assert [sample_and_look_up(Kept([token]), P, (0, 1), (Q, Q), 0).accepted for token in range(3)] == [
        True,
        True,
        False,
    ]


def test_traversal_goes_on_from_the_target_where_rounding_leaves_nothing_owed_at_the_root():
    """Two float kernels can leave p below q everywhere; the next child is then judged by p as the first was."""
    p, q = np.array([0.3, np.nextafter(0.7, 0)]), np.array([0.3, 0.7])
    draws = Kept([1, 0, 1])
    assert traversal(draws, always(p), (), Draft((1, 0), (-1, -1), (q, q))) == Verified((0, 1), 1)
    assert [row.tolist() for row in draws.asked[1:]] == [[1, 0], p.tolist()]
    assert 0 < draws.asked[0][1] < 1e-15
