"""N-gram tables and prompt lookup: what is counted, how contexts back off, what a guess may depend on."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import (
    Task,
    chain_decoder,
    constant,
    generate,
    lookup,
    ngram_drafter,
    ngram_table,
    prompt_lookup_drafter,
)
from reference.algorithms import nasd
from reference.lengths.constant import never
from reference.verifiers.greedy_match import greedy_match
from specverify.laws.draws import Replayed, Tape
from specverify.laws.model_strategies import prompts, tasks
from test_support.laws.rational import always, law_of, pmf

texts = st.lists(st.integers(0, 3), max_size=10).map(tuple)
orders = st.integers(2, 5)
A, B, C, D = range(4)


def counts(table):
    return {context: dict(row) for context, row in table.counts.items()}


def proposal(drafter, tokens, gamma):
    """Return the tokens drafted after ``tokens``; a draw would fail."""
    return drafter.propose(Replayed(()), drafter.init(tokens), tokens, gamma, never).tokens


# What is counted


def test_a_bigram_table_stores_bigrams():
    assert counts(ngram_table(2).observe((A, B, A, B, C))) == {(A,): {B: 2}, (B,): {A: 1, C: 1}}


@given(orders, st.booleans(), texts)
def test_an_n_gram_has_a_context_of_one_token_less(order, backoff, text):
    lengths = {len(context) for context in ngram_table(order, backoff).observe(text).counts}
    allowed = set(range(1, order)) if backoff else {order - 1}
    assert lengths == {length for length in allowed if length < len(text)}


@given(orders, texts)
def test_each_count_is_the_number_of_occurrences(order, text):
    for context, row in ngram_table(order).observe(text).counts.items():
        for token, count in row.items():
            gram = (*context, token)
            assert count == sum(text[i : i + len(gram)] == gram for i in range(len(text)))


@given(orders, texts, st.integers(0, 10))
def test_observing_in_pieces_counts_as_much_as_observing_at_once(order, text, cut):
    cut = min(cut, len(text))
    pieces = ngram_table(order).observe(text[:cut]).observe(text, cut)
    whole = ngram_table(order).observe(text)
    assert pieces == whole
    assert hash(pieces) == hash(whole)


@given(orders, texts, st.permutations(range(10)))
def test_counts_do_not_depend_on_the_order_of_observation(order, text, permutation):
    grams = [(text[:position], text[position]) for position in range(1, len(text))]
    shuffled = [grams[index] for index in permutation if index < len(grams)]
    one, other = ngram_table(order).count_each(grams), ngram_table(order).count_each(shuffled)
    assert counts(one) == counts(other)
    assert one != other or hash(one) == hash(other)


@given(orders, texts, texts)
def test_observing_leaves_the_table_as_it_was(order, first, second):
    table = ngram_table(order).observe(first)
    before, hashed = counts(table), hash(table)
    table.observe(second)
    assert counts(table) == before
    assert hash(table) == hashed


def test_tables_of_different_texts_differ():
    assert ngram_table(2).observe((A, B)) != ngram_table(2).observe((A, C))


# What is predicted


def test_the_longest_context_that_was_seen_decides_alone():
    """Counts {ab -> c}, {b -> c, d, d}: after ab the answer is c, although d follows b more often."""
    table = ngram_table(3).count_each([((A, B), C), ((B,), D), ((B,), D)])
    assert table.predict((A, B)) == C
    assert table.predict((C, B)) == D


def test_one_order_alone_does_not_back_off():
    text = (A, B, C)
    assert ngram_table(3, backoff=True).observe(text).predict((D, B)) == C
    assert ngram_table(3, backoff=False).observe(text).predict((D, B)) is None


def test_a_context_at_the_end_of_the_text_has_not_been_seen():
    table = ngram_table(3).observe((A, B, A, C))
    assert (C,) not in table.counts
    assert table.predict((A, C)) is None


@given(orders, texts, texts, st.booleans())
def test_a_prediction_is_a_most_frequent_successor(order, text, history, newest):
    table = ngram_table(order, newest=newest).observe(text)
    token = table.predict(history)
    seen = [history[len(history) - n :] for n in range(min(order - 1, len(history)), 0, -1)]
    seen = [
        context
        for context in seen
        if any(text[i : i + len(context)] == context for i in range(len(text) - len(context)))
    ]
    if not seen:
        assert token is None
    else:
        after = [
            text[i + len(seen[0])] for i in range(len(text) - len(seen[0])) if text[i : i + len(seen[0])] == seen[0]
        ]
        assert after.count(token) == max(after.count(candidate) for candidate in after)


@given(orders, st.integers(0, 3))
def test_a_prompt_of_one_token_proposes_nothing(order, token):
    assert proposal(ngram_drafter(ngram_table(order)), (token,), 4) == ()


def test_a_draft_follows_the_table_and_ends_at_the_first_unknown_context():
    cyclic, open_ended = (A, B, C, A), (A, C, A, B)
    assert proposal(ngram_drafter(ngram_table(2)), cyclic, 5) == (B, C, A, B, C)
    assert proposal(ngram_drafter(ngram_table(2)), open_ended, 5) == ()
    assert proposal(ngram_drafter(ngram_table(3, backoff=False)), (C, A, B, D, C, A), 5) == (B, D, C, A, B)
    assert proposal(ngram_drafter(ngram_table(3, backoff=False)), (A, B, C, B), 5) == ()


def test_a_draft_stops_short_of_gamma_where_the_text_ends():
    """After (b, a) comes c, and nothing was ever seen after (a, c)."""
    table = ngram_table(3, backoff=False).count_each([((B, A), C)])
    drafter = ngram_drafter(table)
    assert drafter.propose(Replayed(()), table, (D, B, A), 5, never).tokens == (C,)


@given(orders, texts.filter(bool), st.integers(0, 6))
def test_a_draft_has_at_most_gamma_tokens_and_declares_point_masses(order, text, gamma):
    drafter = ngram_drafter(ngram_table(order))
    draft = drafter.propose(Replayed(()), drafter.init(text), text, gamma, never)
    assert len(draft.tokens) <= gamma
    assert draft.pmfs == (None,) * len(draft.tokens)
    assert draft.parents == tuple(range(-1, len(draft.tokens) - 1))


def test_an_order_without_context_and_an_empty_filler_are_refused():
    with pytest.raises(ValueError, match="n-gram order is 1, expected an integer of at least 2"):
        ngram_table(1)
    with pytest.raises(ValueError, match="filler_top_k is 0, expected an integer of at least 1"):
        ngram_drafter(ngram_table(2), filler_top_k=0)


# The filler


def observed(tokens, start, row, filler_top_k):
    drafter = ngram_drafter(ngram_table(2), filler_top_k)
    return counts(drafter.observe(ngram_table(2), tokens, start, always(row)))


def test_the_filler_is_counted_after_the_committed_token():
    row = pmf("1/2", "1/3", "1/6")
    assert observed((A, B), 1, row, 1) == {(A,): {B: 1}}
    assert observed((A, B), 1, row, 2) == {(A,): {A: 1, B: 2}}
    assert observed((A, C), 1, row, 2) == {(A,): {A: 1, B: 1, C: 1}}


def test_the_filler_counts_no_token_the_target_forbids():
    assert observed((A, A), 1, pmf(1, 0, 0), 3) == {(A,): {A: 2}}


def in_turn(tokens):
    """After 0 most probably 1, 2 and 3 in turn and 4 next to them; after those most probably 0."""
    rows = {0: [1, 1, 1, 1, 4], 1: [6, 1, 1, 1, 1]}
    weights = rows[min(tokens[-1], 1)]
    if tokens[-1] == 0:
        weights[1 + len(tokens) // 2 % 3] = 6
    return pmf(*(Fraction(weight, sum(weights)) for weight in weights))


def correct_guesses(filler_top_k):
    drafter = ngram_drafter(ngram_table(2), filler_top_k)
    decoder = chain_decoder(Task(in_turn, horizon=30), drafter, constant(3), greedy_match)
    generation = generate(decoder, (0,), Tape(0))
    assert set(generation.tokens[1::2]) == {0}
    return generation.statistics.accepted


def test_more_filler_can_guess_worse():
    """Greedy bigram guesses: a token that is second best everywhere is counted more often than each of the best."""
    assert correct_guesses(2) < correct_guesses(1)


# No randomness


def states():
    name, key, *rest = np.random.get_state()  # noqa: NPY002 - the global state is what is watched
    return random.getstate(), (name, key.tolist(), rest)


@pytest.mark.parametrize("drafter", [ngram_drafter(ngram_table(3), 2), prompt_lookup_drafter(2)])
@given(task=tasks(3), prompt=prompts(3))
def test_table_and_lookup_drafters_touch_no_generator_and_make_no_draw(drafter, task, prompt):
    before = states()
    state = drafter.init(prompt)
    draft = drafter.propose(Replayed(()), state, prompt, 4, never)
    drafter.observe(state, (*prompt, 0), len(prompt), task.target)
    assert states() == before
    assert drafter.propose(Replayed(()), state, prompt, 4, never).tokens == draft.tokens


# Prompt lookup


def test_lookup_copies_after_the_leftmost_earlier_copy_of_the_longest_suffix():
    assert lookup((A, B, C, A, B, D, A, B), 2, 3) == (C, A, B)
    assert lookup((B, D, A, B, C, A, B), 2, 1) == (C,)
    assert lookup((A, B, C, A, B), 3, 9) == (C, A, B)
    assert lookup((A, B, C), 3, 2) == ()
    assert lookup((A,), 3, 2) == ()


@given(texts, st.integers(1, 4), st.integers(0, 4))
def test_lookup_answers_a_continuation_of_some_suffix(text, longest, count):
    found = lookup(text, longest, count)
    assert len(found) <= count
    if found:
        grams = [(*text[len(text) - n :], *found) for n in range(1, longest + 1) if n < len(text)]
        assert any(text[i : i + len(gram)] == gram for gram in grams for i in range(len(text)))


def test_lookup_drafts_stop_before_the_end_of_sequence():
    assert proposal(prompt_lookup_drafter(2, eos=(D,)), (A, B, D, A), 4) == (B,)
    assert proposal(prompt_lookup_drafter(2), (A, B, D, A), 4) == (B, D, A)


def test_a_lookup_of_no_token_is_refused():
    with pytest.raises(ValueError, match="max_ngram is 0, expected an integer of at least 1"):
        prompt_lookup_drafter(0)


def test_a_guess_is_accepted_with_the_probability_of_its_token():
    p = pmf(".4", ".3", ".3")
    decoder = nasd.build(Task(always(p), horizon=2), order=2, gamma=1)
    accepted = law_of(lambda draws: decoder.step(draws, decoder.init((1, 1)))[1].accepted)
    assert accepted == {1: p[1], 0: 1 - p[1]}
