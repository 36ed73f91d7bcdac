"""Drafts from a pool of phrases and from a datastore: the text stays the target's, the pool is put right."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reference import generate, greedy_law
from reference.algorithms import autoregressive, ouroboros, rest
from reference.drafters.phrases import extra_phrases, phrases_drafter, put_right
from reference.lengths.constant import never
from specverify.laws.draws import Replayed, Tape
from specverify.laws.model_strategies import prompts, tasks
from specverify.laws.tables import one_hot_rows
from test_support.laws.comparison import same_law
from test_support.laws.rational import always, examples, pmf

pools = st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=4).map(tuple), max_size=5).map(tuple)


@given(tasks(3, 1, 6), prompts(3), pools, st.integers(0, 3))
def test_whatever_the_pool_the_text_is_the_targets(task, prompt, warm, depth):
    task = task._replace(target=one_hot_rows(task.target))
    decoder = ouroboros.build(task, depth=depth, length=3, most=2, warm=warm)
    assert {generate(decoder, prompt, Tape(0)).tokens} == set(greedy_law(task, prompt))


def test_phrases_hang_below_the_last_draft():
    drafter = phrases_drafter(always(pmf(0, 1, 0)), 2, 3, 2)
    draft = drafter.propose(Replayed(()), ((1, 0, 0), (0, 1, 1), (1, 0, 2)), (0,), 9, never)
    assert draft.tokens == (1, 1, 0, 0, 2)
    assert draft.parents == (-1, 0, 1, 2, 2)
    assert drafter.propose(Replayed(()), ((1, 0, 0),), (0,), 2, never).tokens == (1, 1)


def test_a_tried_phrase_is_put_right_under_its_first_token():
    """The target says 2 everywhere; the committed text adds its own phrase."""
    drafter = phrases_drafter(always(pmf(0, 1, 0)), 1, 3, 4)
    pool = drafter.observe(((1, 0, 0), (0, 0, 1)), (0, 2), 1, always(pmf(0, 0, 1)))
    assert pool == ((1, 2, 2), (0, 0, 1))
    assert put_right(((1, 0), (2, 0), (1, 1)), [(1, 2)]) == ((1, 0), (2, 0), (1, 2))


def released_pool(drafted, behind, level):
    """``add_extra_ngram``: key -> completions of level - 1 tokens, drafts and what is said behind each of them."""
    token_map = {}
    for i, key in enumerate(drafted):
        completion = []
        for j in range(min(level - 1, len(drafted) - i)):
            completion.append(behind[i + j])
            if i + j + 1 < len(drafted) and drafted[i + j + 1] != behind[i + j]:
                break
        if len(completion) == level - 1:
            token_map.setdefault(key, []).append(tuple(completion))
    return token_map


def short_runs(drafted, behind, level):
    """What the release does not do: runs of agreement, of any length from two on, under an agreed first token."""
    runs = [()]
    for token, answer in zip(drafted[1:], behind, strict=False):
        runs = [*runs[:-1], (*runs[-1], token)] if token == answer else [*runs, ()]
    return [run[:level] for run in runs if len(run) > 1]


def test_a_missed_draft_may_be_the_key_and_a_short_run_is_no_phrase():
    """Drafts 0 1 2 behind a miss at 0, the target says 1 behind 0, 1 behind 1, 0 behind 2."""
    drafted, behind = (0, 1, 2), (1, 1, 0)
    assert extra_phrases(drafted, behind, 3) == [(0, 1, 1)]
    assert released_pool(drafted, behind, 3) == {0: [(1, 1)]}
    assert short_runs(drafted, behind, 3) == []
    assert (short_runs((0, 1, 2, 0), (1, 2, 1, 0), 4), extra_phrases((0, 1, 2, 0), (1, 2, 1, 0), 4)) == (
        [(1, 2)],
        [(0, 1, 2, 1)],
    )


runs = st.integers(1, 7).flatmap(lambda n: st.tuples(*(st.tuples(*[st.integers(0, 1)] * n),) * 2))


@given(runs, st.integers(2, 4))
def test_the_phrases_of_a_miss_are_those_of_the_release(run, level):
    found = {}
    for phrase in extra_phrases(*run, level):
        found.setdefault(phrase[0], []).append(phrase[1:])
    assert found == released_pool(*run, level)


@examples(20)
@given(tasks(3, 1, 4), st.permutations((0, 1, 2)))
def test_an_empty_datastore_and_a_text_without_repeats_draft_nothing_at_first(task, prompt):
    decoder = rest.build(task, datastore=())
    assert decoder.propose(Replayed(()), decoder.init(tuple(prompt))).tokens == ()
    assert same_law(decoder, autoregressive.build(task), tuple(prompt))
