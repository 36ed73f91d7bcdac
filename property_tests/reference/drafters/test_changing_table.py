"""Drafters that learn while they draft: a law that stays put, the buffer, a limit, and training that is refused."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import Sampled, Task, chain, chain_decoder, constant, generate, total_variation
from reference.algorithms import distillspec, online_speculative_decoding, speculative_sampling
from reference.algorithms.online_speculative_decoding import online_decoder, online_drafter
from reference.drafters.changing_table import Learned, after_round, buffered, gradient_step, learned_model, mixture_step
from reference.drafters.distillation import (
    FORWARD_KL,
    REVERSE_KL,
    expected_acceptance,
    gradient,
    jensen_shannon,
    last_token_model,
)
from reference.limits import last_token_draft
from reference.verifiers.speculative_sampling import speculative_sampling as speculative
from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law
from specverify.laws.model_strategies import pmf_pairs, prompts, tasks
from specverify.laws.paths import paths
from specverify.laws.tables import as_float64, table_pair
from specverify.run.verify import Checklist, run_check
from specverify.subjects.algorithm import algorithm_subject
from test_support.laws.rational import P, Q, always, examples, law_of

# Learning while drafting: the law at every moment

TEACHER = Fraction(1, 3)


@pytest.mark.parametrize("interval", [1, 2])
@pytest.mark.parametrize("gamma", [1, 2])
@examples(10)
@given(task=tasks(2, 4, 5), prompt=prompts(2))
def test_the_law_is_the_targets_over_rounds_with_updates_between(interval, gamma, task, prompt):
    decoder = online_speculative_decoding.build(task, eta=TEACHER, interval=interval, gamma=gamma)
    assert decoder_law(decoder, prompt).probabilities == target_law(task, prompt)


@examples(10)
@given(task=tasks(3, 2, 3), prompt=prompts(3), rows=st.lists(pmf_pairs(3), min_size=3, max_size=3))
def test_the_law_is_the_targets_from_whatever_was_learned_before(task, prompt, rows):
    """Any table and any buffer: the decoder may be stopped and looked at at every moment of a long run."""
    learned = Learned(
        table=tuple(((token,), tuple(q.tolist())) for token, (_, q) in enumerate(rows)),
        buffer=tuple(((token,), tuple(p.tolist())) for token, (p, _) in enumerate(rows)),
    )
    decoder = online_decoder(task, 2, mixture_step(TEACHER), 1, 1)
    started = decoder._replace(init=lambda prompt: decoder.init(prompt)._replace(drafter=learned))
    assert decoder_law(started, prompt).probabilities == target_law(task, prompt)


def states_within(decoder, prompt, rounds):
    """Return every state that is reached within so many rounds."""
    states, level = [], [decoder.init(prompt)]
    for _ in range(rounds):
        level = [
            path.outcome[0]
            for state in level
            if state.remaining
            for path in paths(lambda draws, state=state: decoder.step(draws, state))
        ]
        states += level
    return states


def test_the_drafter_does_change_between_rounds():
    """Without this the tests of the law would say nothing."""
    task = Task(*table_pair("generic", 2, 0), horizon=4)
    states = states_within(online_speculative_decoding.build(task, eta=TEACHER, interval=1, gamma=1), (0,), 2)
    assert len({state.drafter.table for state in states}) > 3


def test_a_gradient_instead_of_the_mixture_keeps_the_law_too():
    target, draft = map(as_float64, table_pair("generic", 3, 1))
    task = Task(target, draft, horizon=4)
    decoder = online_decoder(task, 2, gradient_step(jensen_shannon(0.5), 1.0), 1, 1)
    law, wanted = decoder_law(decoder, (0,)).probabilities, target_law(task, (0,))
    assert law == pytest.approx(wanted, abs=1e-12)


def declaring_the_updated_row(task, eta=Fraction(1, 2), gamma=1):
    """Online speculative decoding whose update comes between draw and verification: a race in the drafter."""
    draft = task.draft

    def verify(draws, target, prefix, drafted):
        update = mixture_step(eta)
        rows = tuple(update(q, target(prefix + drafted.tokens[:i])) for i, q in enumerate(drafted.pmfs))
        return speculative(draws, target, prefix, chain(drafted.tokens, rows))

    return chain_decoder(task, online_drafter(draft, 1), constant(gamma), verify)


def law_is_target(build):
    row = online_speculative_decoding.ALGORITHM._replace(build=build, examples=({"gamma": 1},))
    check = check_named("law_is_target")
    return run_check(algorithm_subject(row), check, Checklist((check,)))


def test_declaring_the_updated_row_for_a_draft_from_the_old_one_is_refuted():
    verdict = law_is_target(declaring_the_updated_row)
    assert verdict.status is Status.REFUTED
    assert verdict.counterexample.then


def test_the_same_check_holds_where_the_update_waits_for_the_round():
    assert (
        law_is_target(partial(online_speculative_decoding.build, eta=Fraction(1, 2), interval=1)).status is Status.HOLDS
    )


def test_the_bias_of_a_row_updated_too_early_is_known():
    """P = (.2, .3, .5), d ~ q = (.6, .3, .1), declared (q + p)/2 = (.4, .3, .3): law (.3, .3, .4), TV 1/10."""
    decoder = declaring_the_updated_row(Task(always(P), always(Q), horizon=2))
    first = law_of(lambda draws: decoder.step(draws, decoder.init((0,)))[1].tokens[0])
    assert first == {0: Fraction(3, 10), 1: Fraction(3, 10), 2: Fraction(2, 5)}


# The buffer


def test_the_buffer_holds_the_context_and_the_targets_row_of_each_rejection():
    task = Task(*table_pair("generic", 3, 2), horizon=5)
    decoder = online_decoder(task, 2, mixture_step(TEACHER), interval=9, order=1)
    start = decoder.init((0, 1))
    seen = set()
    for path in paths(lambda draws: decoder.step(draws, start)):
        after, done = path.outcome
        rejected = done.reached > done.accepted
        context = (0, 1, *done.tokens[:-1])
        seen.add(rejected)
        assert after.drafter.buffer == (((context, tuple(task.target(context).tolist())),) if rejected else ())
        assert (after.drafter.table, after.drafter.rounds) == ((), 1)
    assert seen == {False, True}


@pytest.mark.parametrize("interval", [1, 2, 3])
def test_the_buffer_is_emptied_into_the_table_every_so_many_rounds(interval):
    learned = Learned()
    for rounds in range(1, 7):
        learned = buffered(learned, (0, rounds), P)
        learned = after_round(learned, always(Q), mixture_step(TEACHER), interval, 1)
        emptied = rounds % interval == 0
        assert len(learned.buffer) == (0 if emptied else rounds % interval)
        assert learned.rounds == rounds % interval
        assert len(learned.table) == rounds - rounds % interval


def test_an_update_moves_the_row_behind_the_last_tokens_alone():
    learned = buffered(buffered(Learned(), (0, 1), P), (2, 1), P)
    learned = after_round(learned, always(Q), mixture_step(TEACHER), 1, 1)
    now = learned_model(always(Q), learned, 1)
    twice = (1 - TEACHER) ** 2 * Q + (1 - (1 - TEACHER) ** 2) * P
    assert (now((0, 0, 1)) == twice).all()
    assert (now((1, 0)) == Q).all()
    assert total_variation(P, twice) == (1 - TEACHER) ** 2 * total_variation(P, Q)


def test_an_empty_buffer_teaches_nothing():
    assert after_round(Learned(), always(Q), mixture_step(TEACHER), 1, 1) == Learned()


def test_a_drafter_that_is_never_rejected_never_changes():
    target, _ = table_pair("generic", 2, 0)
    task = Task(target, target, horizon=5)
    decoder = online_speculative_decoding.build(task, eta=TEACHER, interval=1, gamma=2)
    assert {state.drafter for state in states_within(decoder, (0,), 3)} == {Learned()}


def test_equal_states_are_equal_keys():
    one = after_round(buffered(Learned(), (0,), P), always(Q), mixture_step(TEACHER), 1, 1)
    assert len({one, after_round(buffered(Learned(), (0,), P), always(Q), mixture_step(TEACHER), 1, 1)}) == 1


def alpha_by_now(task, learned, order=1):
    return float(expected_acceptance(task.target, learned_model(task.draft, learned, order), (0,), 3))


@pytest.mark.parametrize("update", [mixture_step(0.2), gradient_step(FORWARD_KL, 0.5)], ids=["mixture", "gradient"])
def test_serving_raises_alpha(update):
    """Ten requests of 40 tokens to a last-token target: what one leaves behind the next begins with."""
    rng = np.random.default_rng(3)
    target, draft = (last_token_model(rng.normal(0, 1.5, (4, 4))) for _ in range(2))
    task = Task(target, draft, horizon=40)
    decoder = online_decoder(task, 3, update, interval=4, order=1)
    learned, alphas, draws = Learned(), [alpha_by_now(task, Learned())], Sampled(7)
    for _ in range(10):
        state = decoder.init((0,))._replace(drafter=learned)
        while state.remaining:
            state, _ = decoder.step(draws, state)
        learned = state.drafter
        alphas.append(alpha_by_now(task, learned))
    assert alphas == sorted(alphas)
    assert alphas[0] < 0.7
    assert alphas[-1] > 0.9


# What is refused


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: mixture_step(2), r"eta is 2, expected a share in \[0, 1\]"),
        (lambda: jensen_shannon(1.0), "beta is 1.0, expected a number strictly between 0 and 1"),
        (
            lambda: gradient(REVERSE_KL, np.array([0.0, 1.0]), np.zeros(2)),
            "the target has a token of probability 0, expected none: reverse KL is infinite there",
        ),
        (lambda: distillspec.build(Task(always(P), always(Q)), steps=-1), "steps is -1, expected at least 0"),
        (
            lambda: online_speculative_decoding.build(Task(always(P), always(Q)), interval=0),
            "interval is 0, expected at least 1",
        ),
        (
            lambda: online_speculative_decoding.build(Task(always(P), always(Q)), order=0),
            "order is 0, expected at least 1",
        ),
    ],
)
def test_impossible_training_is_refused_in_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_learning_nothing_is_speculative_sampling_round_by_round():
    """A learned row stands for every context that ends alike: only for such a drafter is copying it no change."""
    task = last_token_draft(Task(*table_pair("generic", 3, 4), horizon=12))
    plain, learning = speculative_sampling.build(task, gamma=2), partial(online_speculative_decoding.build, task)
    decoders = plain, learning(eta=0, interval=1, gamma=2), learning(eta=1, interval=1, gamma=2)
    found = [[generate(decoder, (0,), Sampled(seed)).rounds for seed in range(5)] for decoder in decoders]
    assert found[0] == found[1]
    assert found[0] != found[2]
