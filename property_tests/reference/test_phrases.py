"""Drafts from a pool of phrases and from a datastore: the text stays the target's, the pool is put right."""

from __future__ import annotations

from comparison import same_law
from hypothesis import given
from hypothesis import strategies as st
from rational import always, examples, pmf

from reference import generate, greedy_law
from reference.algorithms import autoregressive, ouroboros, rest
from reference.drafters.phrases import agreements, phrases_drafter, with_better_phrase
from reference.lengths.constant import never
from specverify.laws.draws import Replayed, Tape
from specverify.laws.strategies import prompts, tasks
from specverify.laws.tables import one_hot_rows

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
    assert pool == ((0, 0, 1), (1, 2, 2))
    assert with_better_phrase(((1, 0), (2, 0)), (1, 0), (2,), 3) == ((2, 0), (1, 2))


def test_runs_of_agreement_behind_the_first_miss_become_phrases():
    assert agreements((0, 1, 2, 1, 0), (1, 1, 2, 0, 0), start=1) == [(1, 2)]
    assert agreements((0, 1, 2), (0, 1, 2), start=3) == []


@examples(20)
@given(tasks(3, 1, 4), st.permutations((0, 1, 2)))
def test_an_empty_datastore_and_a_text_without_repeats_draft_nothing_at_first(task, prompt):
    decoder = rest.build(task, datastore=())
    assert decoder.propose(Replayed(()), decoder.init(tuple(prompt))).tokens == ()
    assert same_law(decoder, autoregressive.build(task), tuple(prompt))
