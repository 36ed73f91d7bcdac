"""The draft length as a bandit, against a loop with running means."""

from __future__ import annotations

import math
from fractions import Fraction

from reference.lengths.bandit import bandit
from test_support.laws.rational import pmf


def test_the_bandit_is_the_loop_with_running_means():
    """Steps below arms x tries are forced, then the best mean; the bonus is one number for all arms."""
    rule = bandit(3, 2, Fraction(1, 10))
    state, means, calls = rule.init, [0.0] * 3, [0] * 3
    for step in range(1, 20):
        if step < 3 * 2:
            gamma = (step - 1) % 3 + 1
        else:
            bonus = math.sqrt(6 * math.log(step) / sum(calls))
            scores = [mean + bonus for mean in means]
            gamma = scores.index(max(scores)) + 1
        planned = rule.plan(state, (0,))
        assert planned.gamma == gamma
        accepted = (step * 7) % (gamma + 1)
        earned = (accepted + 1) / (1 + gamma / 10)
        means[gamma - 1] = (means[gamma - 1] * calls[gamma - 1] + earned) / (calls[gamma - 1] + 1)
        calls[gamma - 1] += 1
        state = rule.update(planned.state, gamma, accepted)


def test_a_bandit_counts_what_a_round_earns_from_the_first_one():
    rule = bandit(2, 2, Fraction(1, 2))
    state, earned = rule.init, []
    for accepted in (1, 0):
        planned = rule.plan(state, (0,))
        state = rule.update(planned.state, planned.gamma, accepted)
        earned.append(state.earned)
    assert earned == [(Fraction(4, 3), 0), (Fraction(4, 3), Fraction(1, 2))]
    assert [rule.plan(state, (0,)).gamma, rule.stop_after(pmf(".5", ".5"), 0)] == [1, False]


def test_a_bandit_tries_its_last_arm_once_less_and_never_where_every_arm_gets_one_try():
    """Seven forced rounds of four arms and two tries, as the release counts from 1 while below eight."""
    for tries, wanted in ((2, [1, 2, 3, 4, 1, 2, 3, 1, 1]), (1, [1, 2, 3, 1, 1])):
        rule, gammas = bandit(4, tries, Fraction(1, 10)), []
        state = rule.init
        while len(gammas) < len(wanted):
            planned = rule.plan(state, (0,))
            gammas.append(planned.gamma)
            state = rule.update(planned.state, planned.gamma, 0)
        assert gammas == wanted


def test_a_bandit_leaves_an_arm_whose_mean_falls_below_that_of_one_tried_once():
    rule, gammas = bandit(2, 2, Fraction(0)), []
    state = rule.init
    for accepted in (1, 1, 0, 0):
        planned = rule.plan(state, (0,))
        gammas.append(planned.gamma)
        state = rule.update(planned.state, planned.gamma, accepted)
    assert gammas == [1, 2, 1, 2]
