"""Gates on the draft's length: signals with known values, limits, and rules that look back or at other passes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

from reference import Sampled, Task, chain_decoder, constant, generate, model_drafter
from reference.algorithms import gated_drafting, speculative_sampling
from reference.lengths.gating import Gate, dropout_variance, entropy, gated, hard_ratio, is_hard, margin
from reference.verifiers.speculative_sampling import speculative_sampling as speculative
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law
from specverify.laws.model_strategies import prompts, tasks
from test_support.laws.comparison import rounds, seeds, small
from test_support.laws.rational import P, Q, always, examples, pmf


@pytest.mark.parametrize(
    ("gate", "hard"),
    [
        (Gate(), [False, False, False]),
        (Gate(nll=-math.log(0.2)), [False, False, True]),
        (Gate(entropy=0.89), [True, True, True]),
        (Gate(entropy=0.9), [False, False, False]),
        (Gate(margin=Fraction(3, 10)), [False, False, False]),
        (Gate(margin=Fraction(31, 100)), [True, True, True]),
    ],
)
def test_a_signal_fires_beyond_its_threshold(gate, hard):
    """Q = (.6, .3, .1): entropy .8979 nats, margin .3."""
    assert [is_hard(gate, Q, token) for token in range(3)] == hard
    assert [gated(gate, 4).stop_after(Q, token) for token in range(3)] == hard


def test_signals_have_their_known_values():
    assert entropy(Q) == pytest.approx(0.897946, abs=5e-7)
    assert margin(Q) == Fraction(3, 10)
    assert margin(pmf(1)) == 1
    assert 2.5 * math.log(2) == pytest.approx(1.7329, abs=5e-5)
    assert entropy(np.array([0.5, 0.5])) == pytest.approx(math.log(2))


@given(small, prompts(3), seeds)
def test_gates_that_never_fire_are_speculative_sampling_and_gates_that_always_do_draft_one(task, prompt, seed):
    silent = gated_drafting.build(task, gamma=3, nll=None, entropy=None, margin=None)
    assert rounds(silent, prompt, seed) == rounds(speculative_sampling.build(task, gamma=3), prompt, seed)
    loud = gated_drafting.build(task, gamma=3, nll=None, entropy=-1.0, margin=None)
    assert rounds(loud, prompt, seed) == rounds(speculative_sampling.build(task, gamma=1), prompt, seed)


@examples(25)
@given(tasks(2, 2, 5), prompts(2))
def test_gates_that_look_back_or_at_other_passes_are_exact(task, prompt):
    drafter = model_drafter(task.draft)
    back = hard_ratio(task.draft, Gate(nll=0.6), 2, 0.3, 2)
    other = dropout_variance((task.draft, task.target), 0.02, 2)
    for rule in (back, other):
        law = decoder_law(chain_decoder(task, drafter, rule, speculative), prompt).probabilities
        assert law == target_law(task, prompt)


def test_the_block_gate_counts_the_hard_among_the_last_tokens():
    rule = hard_ratio(always(Q), Gate(nll=-math.log(0.2)), block=4, most=0.3, gamma=5)
    assert [rule.plan(None, (0, *text)).gamma for text in ((), (0, 2, 0, 0), (2, 0, 2, 0), (2, 2, 0, 0, 0, 0))] == [
        5,
        5,
        0,
        5,
    ]
    assert rule.plan(None, (0, 2, 2, 0, 0)).trace == (("hard_ratio", 0.5),)


def test_passes_that_agree_have_no_variance():
    assert dropout_variance((always(P), always(P)), 0, 3).plan(None, (0,)).gamma == 3
    assert dropout_variance((always(P), always(Q)), 0, 3).plan(None, (0,)).gamma == 0


def test_impossible_gates_are_refused():
    with pytest.raises(ValueError, match="block is 0, expected at least 1"):
        hard_ratio(always(Q), Gate(), 0, 0.3, 2)
    with pytest.raises(ValueError, match="there are no passes"):
        dropout_variance((), 0.1, 2)


def test_a_gated_decode_ends_its_draft_with_the_hard_token():
    task = Task(always(Q), always(Q), horizon=30)
    decoder = chain_decoder(task, model_drafter(always(Q)), gated(Gate(nll=1.0), 6), speculative)
    for round_ in generate(decoder, (0,), Sampled(0)).rounds[:-3]:
        hard = [is_hard(Gate(nll=1.0), Q, token) for token in round_.draft]
        assert not any(hard[:-1])
        assert hard[-1] or len(round_.draft) == 6


@given(small, prompts(3), seeds)
def test_drafting_with_a_constant_length_of_none_is_the_target_alone(task, prompt, seed):
    decoder = chain_decoder(task, model_drafter(task.draft), constant(0), speculative)
    assert all(round_.draft == () for round_ in rounds(decoder, prompt, seed))
