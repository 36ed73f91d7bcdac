"""Drafters trained before they draft: divergences and their gradients, alpha, and what distillation does to it."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reference import overlap, softmax, total_variation
from reference.algorithms import distillspec, speculative_sampling
from reference.drafters.distillation import (
    FORWARD_KL,
    REVERSE_KL,
    TOTAL_VARIATION,
    distilled,
    expected_acceptance,
    gradient,
    jensen_shannon,
    last_token_model,
    visits,
)
from specverify.laws.law import target_law
from specverify.laws.model_strategies import prompts, tasks
from test_support.laws.rational import P, Q, always, examples, law_of, pmf

DIVERGENCES = {
    "forward KL": FORWARD_KL,
    "reverse KL": REVERSE_KL,
    "JSD(.5)": jensen_shannon(0.5),
    "JSD(.1)": jensen_shannon(0.1),
    "JSD(.9)": jensen_shannon(0.9),
    "TVD": TOTAL_VARIATION,
}
every_divergence = pytest.mark.parametrize("divergence", DIVERGENCES.values(), ids=DIVERGENCES)

_ENTRIES = st.lists(st.floats(-2, 2).map(lambda value: round(value, 3)), min_size=4, max_size=4).map(np.array)


# Divergences and their gradients


@every_divergence
@given(target=_ENTRIES, logits=_ENTRIES)
def test_a_gradient_is_the_limit_of_differences(divergence, target, logits):
    """Central differences of step 1e-5 are off by the third derivative times 1e-10, and by rounding over 1e-5."""
    p, step = softmax(target), 1e-5
    assume(divergence is not TOTAL_VARIATION or abs(softmax(logits) - p).min() > 1e-3)
    found = gradient(divergence, p, logits)
    for token, unit in enumerate(np.eye(4)):
        ends = [divergence.value(p, softmax(logits + sign * step * unit)) for sign in (1, -1)]
        assert found[token] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-8)


@every_divergence
def test_another_gradient_is_seen_by_the_differences(divergence):
    """The control: a logit gradient without its normalisation is off by far more than the tolerance."""
    p, logits = softmax(np.array([1.0, 0.0, -1.0])), np.array([0.0, 0.5, -0.5])
    q = softmax(logits)
    careless = q * divergence.slope(p, q)
    assert abs(careless - gradient(divergence, p, logits)).max() > 1e-3


@every_divergence
@given(target=_ENTRIES, logits=_ENTRIES)
def test_a_gradient_sums_to_zero_and_vanishes_at_the_target(divergence, target, logits):
    p = softmax(target)
    assert gradient(divergence, p, logits).sum() == pytest.approx(0, abs=1e-12)
    assert divergence.value(p, p) == pytest.approx(0, abs=1e-12)
    if divergence is not TOTAL_VARIATION:
        assert gradient(divergence, p, target) == pytest.approx(np.zeros(4), abs=1e-12)


def test_divergences_have_their_known_values():
    """P = (.2, .3, .5), q = (.6, .3, .1); m = (.4, .3, .3) at beta = 1/2."""
    p, q = np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.3, 0.1])
    assert FORWARD_KL.value(p, q) == pytest.approx(0.2 * np.log(1 / 3) + 0.5 * np.log(5))
    assert REVERSE_KL.value(p, q) == pytest.approx(0.6 * np.log(3) + 0.1 * np.log(1 / 5))
    halves = 0.2 * np.log(1 / 2) + 0.5 * np.log(5 / 3), 0.6 * np.log(3 / 2) + 0.1 * np.log(1 / 3)
    assert jensen_shannon(0.5).value(p, q) == pytest.approx(sum(halves) / 2)
    assert TOTAL_VARIATION.value(p, q) == pytest.approx(float(total_variation(P, Q))) == pytest.approx(0.4)


def test_the_forward_gradient_is_q_minus_p():
    p, logits = softmax(np.array([1.0, 0.0, -1.0])), np.array([0.0, 0.5, -0.5])
    assert gradient(FORWARD_KL, p, logits) == pytest.approx(softmax(logits) - p)


@pytest.mark.parametrize("beta", [0.001, 0.999])
def test_the_jensen_shannon_family_ends_in_the_two_directions(beta):
    p, q = softmax(np.array([1.0, 0.0, -1.0])), softmax(np.array([0.0, 0.5, -0.5]))
    one = FORWARD_KL if beta < 0.5 else REVERSE_KL
    small = min(beta, 1 - beta)
    assert jensen_shannon(beta).value(p, q) / small == pytest.approx(one.value(p, q), rel=5e-3)


# Alpha


@examples(15)
@given(task=tasks(3, 3, 3), prompt=prompts(3))
def test_alpha_is_the_acceptance_of_one_draft_at_every_position_of_the_targets_text(task, prompt):
    """The enumerated share: at each position of emitted text a round of one draft is begun, and accepted or not."""
    task = task._replace(eos=(), horizon=3)
    share = 0
    for text, mass in target_law(task, prompt).items():
        for i in range(3):
            decoder = speculative_sampling.build(task._replace(horizon=2), gamma=1)
            state = decoder.init(prompt + text[:i])
            accepted = law_of(lambda draws, state=state, decoder=decoder: decoder.step(draws, state)[1].accepted)
            share += mass * accepted.get(1, 0) / 3
    assert expected_acceptance(task.target, task.draft, prompt, 3) == share


@examples(15)
@given(task=tasks(3), prompt=prompts(3))
def test_visits_sum_to_one_at_every_position(task, prompt):
    found = visits(task.target, prompt, 3)
    for length in range(3):
        assert sum(mass for context, mass in found.items() if len(context) == len(prompt) + length) == 1


def test_alpha_is_read_on_the_targets_text_and_not_on_the_drafters():
    """After token 0 the drafter is perfect, after token 1 hopeless; the target says 0, the drafter says 1."""
    p = {0: pmf("9/10", "1/10"), 1: pmf("1/2", "1/2")}
    q = {0: pmf("9/10", "1/10"), 1: pmf(0, 1)}
    target = lambda tokens: p[tokens[-1]]  # noqa: E731
    draft = lambda tokens: q[tokens[-1]]  # noqa: E731
    on_target = expected_acceptance(target, draft, (0,), 2)
    assert on_target == (1 + Fraction(9, 10) + Fraction(1, 10) * Fraction(1, 2)) / 2
    own = visits(draft, (1,), 2)
    on_own = sum(weight * overlap(target(c), draft(c)) for c, weight in own.items()) / 2
    assert on_own < expected_acceptance(target, draft, (1,), 2)


def test_no_text_has_no_alpha():
    with pytest.raises(ValueError, match="length is 0, expected at least 1 emitted token"):
        expected_acceptance(always(P), always(Q), (0,), 0)


# DistillSpec


@examples(15)
@given(task=tasks(3), prompt=prompts(3), eta=st.fractions(0, 1, max_denominator=6))
def test_each_step_of_the_row_moves_alpha_as_its_formula_says(task, prompt, eta):
    alphas = [
        expected_acceptance(task.target, distillspec.distilled_draft(task, eta, steps), prompt, 2) for steps in range(4)
    ]
    assert alphas == [1 - (1 - eta) ** steps * (1 - alphas[0]) for steps in range(4)]


@every_divergence
@pytest.mark.parametrize("own_text", [False, True], ids=["the target's text", "its own text"])
def test_gradient_steps_raise_alpha_towards_the_best_of_its_kind(divergence, own_text):
    """A last-token student of a last-token target, from equal logits: every run ends better than it began."""
    target = last_token_model(np.random.default_rng(5).normal(0, 1, (3, 3)))
    learn = partial(distilled, target, divergence=divergence, prompt=(0,), length=3, own_text=own_text)
    logits, alphas = np.zeros((3, 3)), []
    for _ in range(6):
        alphas.append(expected_acceptance(target, last_token_model(logits), (0,), 3))
        logits = learn(logits=logits, rate=0.5, steps=4)
    assert alphas == sorted(alphas)
    assert alphas[-1] > alphas[0] + 0.02


def test_steps_up_the_gradient_lower_alpha():
    target = last_token_model(np.random.default_rng(5).normal(0, 1, (3, 3)))
    wrong = distilled(target, np.zeros((3, 3)), FORWARD_KL, (0,), 3, rate=-0.5, steps=4)
    before = expected_acceptance(target, last_token_model(np.zeros((3, 3))), (0,), 3)
    assert expected_acceptance(target, last_token_model(wrong), (0,), 3) < before - 0.02


def test_distillation_leaves_its_argument_alone():
    start = np.zeros((3, 3))
    distilled(always(np.array([0.2, 0.3, 0.5])), start, FORWARD_KL, (0,), 2, rate=1.0, steps=1)
    assert (start == 0).all()
