"""Fixed-point methods: Jacobi's certain prefix and sweeps, lookahead's window and pool, a tuned model's own text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import Task, argmax, generate, greedy_law
from reference.algorithms import autoregressive, cllm, jacobi, lookahead
from reference.drafters.lookahead import Lookahead, lookahead_drafter, phrases_after, with_phrase
from reference.lengths.constant import never
from specverify.laws.draws import Replayed, Tape
from specverify.laws.enumeration import decoder_law
from specverify.laws.model_strategies import prompts, tasks
from specverify.laws.tables import one_hot_rows, table_pair
from test_support.laws.rational import always, examples, pmf

RULES = pytest.mark.parametrize("rule", ["prefix", "fixed point"])


def random_model(seed, vocabulary=4):
    """Return a one-hot language model of the whole text."""
    return one_hot_rows(table_pair("generic", vocabulary, seed)[0])


def decoded(decoder, prompt=(0,)):
    return generate(decoder, prompt, Tape(0))


# Jacobi


@RULES
@given(tasks(3, 0, 9), prompts(3), st.integers(1, 9))
def test_jacobi_emits_the_greedy_text(rule, task, prompt, block):
    (text,) = greedy_law(task, prompt)
    assert decoded(jacobi.build(task, block, rule), prompt).tokens == text


def sweeps_of(seed, block):
    """Return the sweeps over one block until its prefix is certain, and until nothing changes."""
    task = Task(random_model(seed), horizon=block)
    by_prefix = decoded(jacobi.build(task, block)).rounds
    (block_round,) = decoded(jacobi.build(task, block, "fixed point")).rounds
    return len(by_prefix), dict(block_round.trace)["sweeps"]


def test_the_prefix_rule_takes_at_most_m_sweeps_and_an_unchanged_block_one_more():
    counts = [sweeps_of(seed, 8) for seed in range(300)]
    assert max(first for first, _ in counts) == 8
    assert max(second for _, second in counts) == 9
    assert all(second in {first, first + 1} for first, second in counts)


def test_a_constant_model_takes_two_sweeps():
    constant = always(pmf(0, 1))
    assert len(decoded(jacobi.build(Task(constant, horizon=8), block=8)).rounds) == 2
    (only,) = decoded(jacobi.build(Task(constant, horizon=8), block=8, rule="fixed point")).rounds
    assert dict(only.trace) == {"sweeps": 2}


@examples(20)
@given(tasks(3, 1, 6), prompts(3))
def test_a_block_of_one_token_decodes_token_by_token(task, prompt):
    generation = decoded(jacobi.build(task, block=1), prompt)
    assert all(round_.draft == () and len(round_.tokens) == 1 for round_ in generation.rounds)


@RULES
def test_a_block_of_no_token_and_another_rule_are_refused(rule):
    task = Task(always(pmf(1)))
    with pytest.raises(ValueError, match="block is 0, expected an integer >= 1"):
        jacobi.build(task, 0, rule)
    with pytest.raises(ValueError, match="rule is 'both', expected 'prefix' or 'fixed point'"):
        jacobi.build(task, 2, "both")


@given(tasks(3, 1, 6), prompts(3), st.integers(1, 4))
def test_a_fine_tuned_model_is_decoded_to_its_own_text(task, prompt, block):
    own = jacobi.build(task._replace(target=task.draft), block)
    assert decoded(cllm.build(task, block), prompt) == decoded(own, prompt)
    untuned = task._replace(draft=task.target)
    assert decoded(cllm.build(untuned, block), prompt) == decoded(jacobi.build(task, block), prompt)


# Lookahead


def test_a_constant_model_takes_five_steps_with_bigrams_and_jacobi_two():
    """At most two tokens a step: lookahead with N = 2 is not Jacobi decoding."""
    for prompt in ((0,), (1,)):
        task = Task(always(pmf(0, 1)), horizon=8)
        assert len(decoded(lookahead.build(task, width=4, order=2, guesses=3), prompt).rounds) == 5
    assert len(decoded(jacobi.build(task, block=8), (0,)).rounds) == 2


@pytest.mark.parametrize("order", [2, 3, 4])
@given(seed=st.integers(0, 300), width=st.integers(0, 5), guesses=st.integers(1, 4))
def test_lookahead_emits_the_greedy_text_in_no_more_steps(order, seed, width, guesses):
    task = Task(random_model(seed), horizon=12)
    generation = decoded(lookahead.build(task, width, order, guesses))
    assert {generation.tokens} == set(greedy_law(task, (0,)))
    assert all(1 <= len(round_.tokens) <= order for round_ in generation.rounds)


@examples(20)
@given(tasks(3, 1, 4), prompts(3), st.integers(2, 4))
def test_without_a_window_nothing_is_drafted(task, prompt, order):
    found = decoder_law(lookahead.build(task, width=0, order=order), prompt)
    assert found.probabilities == decoder_law(autoregressive.build(task), prompt).probabilities
    assert {drafted for drafted, _ in found.coverage.outcomes} == {0}


def stepped(state, drafter, target, tokens, steps):
    """Return the state after ``steps`` rounds of one token each, and the text."""
    for _ in range(steps):
        tokens = (*tokens, argmax(target(tokens)))
        state = drafter.observe(state, tokens, len(tokens) - 1, target)
    return state, tokens


@pytest.mark.parametrize(("width", "order"), [(1, 2), (5, 2), (3, 3), (4, 4), (2, 5)])
def test_the_window_fills_in_n_minus_2_steps_and_keeps_its_shape(width, order):
    drafter, target = lookahead_drafter(width, order, guesses=9), random_model(1)
    state, tokens = stepped(drafter.init((0, 1)), drafter, target, (0, 1), order - 2)
    for _ in range(4):
        assert [len(row) for row in state.rows] == [width - 1] + [width] * (order - 2)
        state, tokens = stepped(state, drafter, target, tokens, 1)
    assert all(len(phrase) == order for phrase in state.pool)


def test_no_n_gram_is_pooled_before_the_window_is_full():
    drafter, target = lookahead_drafter(3, 4, guesses=9), random_model(2)
    filled, tokens = stepped(drafter.init((0,)), drafter, target, (0,), 2)
    assert filled.pool == ()
    assert stepped(filled, drafter, target, tokens, 1)[0].pool


def test_a_column_sees_the_text_row_0_up_to_itself_and_its_own_rows():
    """Window (last, a, b) over (c, d, e): column 1 asks for what follows text, last, a, d."""
    asked = []

    def target(tokens):
        asked.append(tokens)
        return pmf(1, *[0] * 9)

    drafter = lookahead_drafter(3, 3, guesses=9)
    drafter.observe(Lookahead(((4, 5), (6, 7, 8))), (1, 2, 9), 2, target)
    assert asked == [(1, 2, 6), (1, 2, 4, 7), (1, 2, 4, 5, 8)]


def test_the_window_moves_one_place_and_drops_its_oldest_row():
    drafter = lookahead_drafter(3, 3, guesses=9)
    state = drafter.observe(Lookahead(((4, 5), (6, 7, 8))), (1, 2, 9), 2, always(pmf(0, 0, 0, 1)))
    assert state == Lookahead(((7, 8), (3, 3, 3)), ((2, 6, 3), (4, 7, 3), (5, 8, 3)))


def test_the_pool_keeps_the_phrases_of_a_token_that_were_used_last():
    pool = ()
    for phrase in ((0, 1), (0, 2), (1, 1), (0, 1), (0, 3)):
        pool = with_phrase(pool, phrase, most=2)
    assert pool == ((1, 1), (0, 1), (0, 3))
    assert phrases_after(pool, 0, 4) == [(1,), (3,)]
    assert phrases_after(pool, 0, 0) == [(), ()]
    assert phrases_after(pool, 2, 4) == []


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=20), st.integers(1, 3))
def test_a_pool_holds_no_phrase_twice_and_not_too_many_of_a_token(phrases, most):
    pool = ()
    for phrase in phrases:
        pool = with_phrase(pool, phrase, most)
        assert pool[-1] == phrase
    assert len(set(pool)) == len(pool)
    assert all(sum(phrase[0] == first for phrase in pool) <= most for first in range(3))


def test_candidates_are_the_pools_phrases_behind_the_last_token_as_a_tree():
    drafter = lookahead_drafter(2, 3, guesses=3)
    state = Lookahead(((0,), (0, 0)), ((1, 2, 0), (0, 1, 1), (1, 2, 2)))
    draft = drafter.propose(Replayed(()), state, (0, 1), 5, never)
    assert draft == ((2, 0, 2), (-1, 0, 0), (None, None, None))
    assert drafter.propose(Replayed(()), state, (0, 1), 1, never).tokens == (2,)


def test_impossible_windows_are_refused():
    for options in ((-1, 3, 2), (2, 1, 2), (2, 3, 0)):
        with pytest.raises(ValueError, match=r"width is .*, expected at least 0, 2 and 1"):
            lookahead_drafter(*options)


def test_soft_targets_are_drawn_from_and_not_followed():
    """With float rows too, the first token has the law of p, whatever the pool says."""
    target = always(np.array([0.25, 0.75]))
    law = decoder_law(lookahead.build(Task(target, horizon=3), width=2, order=2), (0,)).probabilities
    assert law[0, 0, 0] == pytest.approx(0.25**3)
    assert law[1, 1, 1] == pytest.approx(0.75**3)
