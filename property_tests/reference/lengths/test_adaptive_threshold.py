"""Gates and the moving threshold on their own: where exactly a token is hard, which text is read, what is refused."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from reference.lengths.adaptive_threshold import Schedule, Threshold, adaptive_threshold, threshold_after
from reference.lengths.gating import Gate, dropout_variance, entropy, gated, hard_ratio, is_hard, margin
from test_support.laws.rational import P, Q, always, pmf

HALF = pmf("1/2", "1/2")


# One token


@pytest.mark.parametrize(
    ("gate", "hard"),
    [
        (Gate(), False),
        (Gate(nll=math.log(2)), False),
        (Gate(nll=math.nextafter(math.log(2), 0)), True),
        (Gate(entropy=math.log(2)), False),
        (Gate(entropy=math.nextafter(math.log(2), 0)), True),
        (Gate(margin=0), False),
        (Gate(margin=Fraction(1, 10**9)), True),
        (Gate(nll=9.0, entropy=9.0, margin=0), False),
        (Gate(nll=0.0, entropy=9.0, margin=0), True),
        (Gate(nll=9.0, entropy=0.0, margin=0), True),
        (Gate(nll=9.0, entropy=9.0, margin=1), True),
    ],
    ids=str,
)
def test_a_token_is_hard_beyond_a_threshold_and_not_on_it(gate, hard):
    """Of two equal tokens each has the likelihood 1/2, the entropy is ln 2 and the margin 0."""
    assert is_hard(gate, HALF, 0) is hard
    assert gated(gate, 3).stop_after(HALF, 1) is hard


def test_entropy_and_margin_have_their_values():
    assert entropy(pmf(1, 0)) == 0
    assert entropy(pmf(".5", ".25", ".25")) == pytest.approx(1.5 * math.log(2), abs=1e-15)
    assert (margin(P), margin(Q), margin(pmf(1)), margin(HALF)) == (Fraction(1, 5), Fraction(3, 10), 1, 0)


def test_the_likelihood_is_that_of_the_token_drawn():
    assert [is_hard(Gate(nll=math.log(3)), P, token) for token in range(3)] == [True, True, False]


# The share of hard tokens


def by_last(tokens):
    """Likely 1 after 0 and likely 0 after 1, by 9 to 1."""
    return pmf(".1", ".9") if tokens[-1] == 0 else pmf(".9", ".1")


@pytest.mark.parametrize(
    ("prefix", "block", "share"),
    [
        ((0,), 4, 0.0),
        ((0, 1), 1, 0.0),
        ((0, 0), 1, 1.0),
        ((0, 0, 1), 1, 0.0),
        ((0, 0, 1), 2, 0.5),
        ((0, 0, 1), 9, 0.5),
        ((0, 0, 0, 1, 0), 3, 1 / 3),
        ((0, 0, 0, 1, 0), 4, 0.5),
    ],
)
def test_the_share_is_that_of_the_last_tokens_each_in_its_own_text(prefix, block, share):
    """A token that repeats the one before it is hard."""
    rule = hard_ratio(by_last, Gate(nll=1.0), block, most=share, gamma=3)
    assert rule.plan(None, prefix)[::2] == (3, (("hard_ratio", share),))
    below = hard_ratio(by_last, Gate(nll=1.0), block, most=share - 1e-9, gamma=3)
    assert below.plan(None, prefix).gamma == 0


def test_a_token_the_drafter_finds_impossible_is_hard_under_every_gate():
    rule = hard_ratio(always(pmf(1, 0)), Gate(), 2, most=0.4, gamma=3)
    assert [rule.plan(None, prefix).trace[0][1] for prefix in ((0, 0, 0), (0, 0, 1), (0, 1, 1))] == [0.0, 0.5, 1.0]


# Passes that disagree


def test_the_variance_is_averaged_over_passes_and_tokens():
    """Of P and Q each token's variance is the square of half the difference: (.04, 0, .04) on average .08/3."""
    variance = (((P - Q) / 2) ** 2).sum() / 3
    assert variance == Fraction(2, 75)
    for most, gamma in ((variance, 5), (variance - Fraction(1, 10**9), 0)):
        assert dropout_variance([always(P), always(Q)], most, 5).plan(None, (0,)).gamma == gamma
    assert dropout_variance([always(P)], 0, 5).plan(None, (0,)).gamma == 5


def test_the_passes_read_the_text():
    rule = dropout_variance([by_last, always(pmf(".1", ".9"))], 0, 5)
    assert [rule.plan(None, prefix).gamma for prefix in ((1, 0), (0, 1))] == [5, 0]


# The threshold that follows acceptance


def test_a_threshold_moves_by_the_shares_of_its_schedule():
    """The average is 1/4 1/2 + 3/4 share; the threshold 1/3 th + 2/3 (th +- 1/10)."""
    schedule = Schedule(Fraction(1, 4), Fraction(1, 2), Fraction(1, 10), Fraction(1, 3))
    state = Threshold(Fraction(2, 5), Fraction(1, 2))
    up, down = Fraction(2, 5) + Fraction(1, 15), Fraction(2, 5) - Fraction(1, 15)
    assert threshold_after(state, schedule, 2, 0, 4) == Threshold(up, Fraction(1, 8))
    assert threshold_after(state, schedule, 2, 1, 4) == Threshold(down, Fraction(1, 2))
    assert threshold_after(state, schedule, 4, 2, 4) == Threshold(Fraction(2, 5), Fraction(1, 2))
    assert threshold_after(state, schedule, 1, 1, 4) == Threshold(down, Fraction(7, 8))
    assert threshold_after(state, schedule, 1, 0, 4) == Threshold(up, Fraction(1, 8))
    assert threshold_after(state, schedule, 0, 0, 4) == state


def test_a_rule_stops_by_its_own_threshold_and_starts_from_another():
    start, schedule = Threshold(Fraction(1, 2)), Schedule(Fraction(0), Fraction(1), Fraction(1, 10), Fraction(0))
    rule = adaptive_threshold(Threshold(Fraction(3, 10)), start, schedule, 4)
    assert rule.init == start
    assert rule.plan(start, (0,))[:2] == (4, start)
    assert [rule.stop_after(P, token) for token in range(3)] == [True, False, False]
    assert rule.update(start, 4, 4) == Threshold(Fraction(1, 2), 1)
    assert rule.update(start, 3, 3) == Threshold(Fraction(2, 5), 1)
    assert rule.update(start, 3, 2) == Threshold(Fraction(3, 5), Fraction(2, 3))


@pytest.mark.parametrize(("value", "stops"), [(-1, [False] * 3), (0, [False] * 3), (1, [True] * 3), (7, [True] * 3)])
def test_a_threshold_that_left_the_probabilities_stops_always_or_never(value, stops):
    rule = adaptive_threshold(Threshold(value), Threshold(value), Schedule(), 2)
    assert [rule.stop_after(P, token) for token in range(3)] == stops


# What is refused


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: hard_ratio(always(P), Gate(), 2, 0.5, -1), "^gamma is -1, expected an integer >= 0"),
        (lambda: hard_ratio(always(P), Gate(), 0, 0.5, 2), "^block is 0, expected at least 1"),
        (lambda: dropout_variance([always(P)], 0.5, -1), "^gamma is -1, expected an integer >= 0"),
        (lambda: dropout_variance([], 0.5, 2), "^there are no passes, expected at least one drafter with dropout"),
        (lambda: gated(Gate(), -1), "^gamma is -1, expected an integer >= 0"),
        *(
            (
                lambda wrong=wrong: adaptive_threshold(Threshold(0), Threshold(0), wrong, 2),
                r"^the schedule is \(.*\), expected shares in \[0, 1\] but for the step",
            )
            for wrong in (Schedule(keep_rate=-0.1), Schedule(aim=1.1), Schedule(keep_threshold=1.1))
        ),
    ],
)
def test_impossible_gates_are_refused_in_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_shares_at_their_ends_and_any_step_are_allowed():
    for schedule in (Schedule(0, 0, 9, 0), Schedule(1, 1, -9, 1)):
        assert adaptive_threshold(Threshold(0), Threshold(0), schedule, 0).plan(None, (0,)).gamma == 0
    assert hard_ratio(always(P), Gate(), 1, 0.5, 0).plan(None, (0,)).gamma == 0


def test_the_schedule_is_that_of_the_released_code_unless_told_otherwise():
    assert Schedule() == (0.5, 0.9, 0.01, 0.9)
    assert Threshold(0.3) == (0.3, 0)
    assert Gate() == (None, None, None)
