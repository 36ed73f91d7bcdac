"""Drafts from the target's own layers: skipping, early exit, the moving threshold, and passes begun ahead."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import Task, argmax, chain, generate
from reference.algorithms import (
    autoregressive,
    confidence_stopping,
    draft_and_verify,
    layerskip,
    ppd,
    speculative_sampling,
)
from reference.drafters.self_draft import partial_model
from reference.lengths.adaptive_threshold import Schedule, Threshold, adaptive_threshold, threshold_after
from reference.verifiers.speculative_sampling import speculative_sampling as speculative
from specverify.laws.draws import Tape
from specverify.laws.model_strategies import prompts
from test_support.laws.comparison import rounds, seeds, small
from test_support.laws.rational import P, Q, always, as_law, distance, law_of, pmf, vector

# Layers


@given(small, prompts(3), seeds)
def test_no_layer_skipped_is_a_perfect_drafter_and_all_skipped_is_q(task, prompt, seed):
    whole = layerskip.build(task, gamma=2, exit_layer=3, layers=3)
    assert all(round_.accepted == round_.reached for round_ in rounds(whole, prompt, seed))
    unskipped = draft_and_verify.build(task, gamma=2, skipped=0)
    assert all(round_.accepted == round_.reached for round_ in rounds(unskipped, prompt, seed))
    none = layerskip.build(task, gamma=2, exit_layer=0, layers=3)
    assert rounds(none, prompt, seed) == rounds(speculative_sampling.build(task, gamma=2), prompt, seed)


def test_half_of_the_layers_are_half_way():
    assert partial_model(always(P), always(Q), 1, 2)((0,)).tolist() == ((P + Q) / 2).tolist()
    with pytest.raises(ValueError, match="run is 3 of 2 layers, expected a number from 0 to the layers"):
        partial_model(always(P), always(Q), 3, 2)


STILL = Schedule(step=0)


@given(small, prompts(3), st.fractions(0, 1, max_denominator=5), seeds)
def test_a_threshold_that_stands_still_is_confidence_stopping(task, prompt, threshold, seed):
    fixed = draft_and_verify.build(task, gamma=3, threshold=threshold, schedule=STILL, skipped=1, layers=1)
    assert rounds(fixed, prompt, seed) == rounds(confidence_stopping.build(task, threshold, 3), prompt, seed)
    free = draft_and_verify.build(task, gamma=3, threshold=0, schedule=STILL, skipped=1, layers=1)
    assert rounds(free, prompt, seed) == rounds(speculative_sampling.build(task, gamma=3), prompt, seed)


EXACT = Schedule(Fraction(1, 2), Fraction(9, 10), Fraction(1, 100), Fraction(9, 10))
HALF = Threshold(Fraction(1, 2))


@pytest.mark.parametrize(
    ("matched", "drafted", "accepted", "threshold"),
    [
        ("0", 4, 0, ".501"),
        ("0", 4, 4, ".501"),
        ("1", 4, 4, ".499"),
        (".8", 4, 4, ".499"),
        ("1", 8, 8, ".5"),
        (".8", 8, 8, ".5"),
        (".7", 8, 8, ".501"),
    ],
)
def test_the_threshold_rises_below_the_rate_aimed_at_and_falls_above_it(matched, drafted, accepted, threshold):
    """By a tenth of eps; it stays where it is when all was accepted and nothing stopped the draft."""
    state = HALF._replace(matched=Fraction(matched))
    after = threshold_after(state, EXACT, drafted, accepted, 8)
    assert after.matched == Fraction(matched) / 2 + Fraction(accepted, 2 * drafted)
    assert after.value == Fraction(threshold)


def test_a_round_without_draft_leaves_the_threshold_alone():
    assert threshold_after(HALF, EXACT, 0, 0, 8) == HALF


@given(small, prompts(3), seeds)
def test_the_threshold_travels_in_the_state(task, prompt, seed):
    decoder = draft_and_verify.build(task, gamma=2, threshold=Fraction(1, 2), schedule=EXACT, skipped=1, layers=2)
    draws, state, expected = Tape(seed), decoder.init(prompt), HALF
    while state.remaining:
        assert state.length == expected
        state, done = decoder.step(draws, state)
        expected = threshold_after(expected, EXACT, len(done.draft), done.accepted, 2)


def test_a_schedule_of_impossible_shares_is_refused():
    with pytest.raises(ValueError, match="expected shares in"):
        adaptive_threshold(HALF, HALF, Schedule(aim=2), 3)


def test_an_argmax_draft_verified_with_the_soft_q_is_biased():
    """The default of the released Draft&Verify sampler: p = (.5, .5), q = (.6, .4) gives (5/6, 1/6)."""
    p, q = pmf(".5", ".5"), pmf(".6", ".4")
    draft = chain((argmax(q),), (q,))
    law = law_of(lambda draws: speculative(draws, always(p), (), draft).tokens[0])
    assert vector(law, 2) == pmf("5/6", "1/6").tolist()
    assert distance(law, as_law(p)) == Fraction(1, 3)


# Pipelines


@pytest.mark.parametrize(("hit", "speedup"), [(".5", "4/3"), (".8", "5/3")])
def test_a_token_takes_fewer_layers_the_more_often_it_was_guessed(hit, speedup):
    """Exit at half of the layers, guessed with probability h: 1 / (1 - h/2)."""
    p = pmf(hit, 1 - Fraction(hit))
    decoder = ppd.build(Task(always(p), always(pmf(1, 0)), horizon=9), exit_layer=5, layers=10, k=1)

    def second_round(draws):
        return dict(decoder.step(draws, decoder.step(draws, decoder.init((0,)))[0])[1].trace)["layers"]

    layers = sum(took * mass for took, mass in law_of(second_round).items())
    assert layers == 10 - 5 * Fraction(hit)
    assert Fraction(10) / layers == Fraction(speedup)


@given(small, prompts(3), st.integers(0, 3), seeds)
def test_pipelining_changes_the_time_and_not_the_text(task, prompt, k, seed):
    generation = generate(ppd.build(task, exit_layer=1, layers=3, k=k), prompt, Tape(seed))
    assert generation.tokens == generate(autoregressive.build(task), prompt, Tape(seed)).tokens
    traces = [dict(round_.trace) for round_ in generation.rounds]
    assert traces[0]["layers"] == 3
    assert [trace["layers"] for trace in traces[1:]] == [1 if trace["guessed"] else 3 for trace in traces[:-1]]
    if k == 0:
        assert not any(trace["guessed"] for trace in traces)


def test_passes_cannot_be_begun_a_negative_number_of_times():
    with pytest.raises(ValueError, match="k is -1, expected at least 0"):
        ppd.build(Task(always(P), always(Q)), k=-1)
