"""Drafts from heads, modules and masks: what each may see of the text, and what it reduces to."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import Task, argmax, generate
from reference.algorithms import hydra_heads, medusa_heads, mtp, pass_look_ahead, space, speculative_sampling
from reference.drafters.head_chain import dependent_head, independent_heads, look_ahead_heads
from specverify.laws.draws import Replayed, Tape
from specverify.laws.model_strategies import prompts
from specverify.laws.tables import table_pair
from test_support.laws.comparison import rounds, seeds, small
from test_support.laws.rational import always, law_of, pmf


@given(small, prompts(3), seeds)
def test_one_module_of_multi_token_prediction_is_speculative_sampling_of_one_draft(task, prompt, seed):
    plain = speculative_sampling.build(task, gamma=1)
    assert rounds(mtp.build(task, gamma=1), prompt, seed) == rounds(plain, prompt, seed)


@given(small, prompts(3), st.integers(0, 4), seeds)
def test_dependent_heads_of_one_q_are_speculative_sampling_with_it(task, prompt, gamma, seed):
    plain = speculative_sampling.build(task, gamma=gamma)
    assert rounds(hydra_heads.build(task, gamma=gamma), prompt, seed) == rounds(plain, prompt, seed)


@given(small, prompts(3), seeds)
def test_one_independent_head_is_speculative_sampling_with_the_head_as_q(task, prompt, seed):
    (head,) = independent_heads(task.draft, 1)
    plain = speculative_sampling.build(task._replace(draft=lambda tokens: head(tokens, ())), gamma=1)
    assert rounds(medusa_heads.build(task, gamma=1), prompt, seed) == rounds(plain, prompt, seed)


@given(st.integers(0, 99), prompts(3), prompts(3), prompts(3))
def test_heads_see_what_their_method_lets_them_see(seed, prefix, drafted, others):
    draft = table_pair("generic", 3, seed)[1]
    prefix = (0, *prefix)
    for head in independent_heads(draft, 3):
        seen = head(prefix, drafted).tolist()
        assert all(head((*prefix[:-1], last), others).tolist() == seen for last in range(3))
    for head in look_ahead_heads(draft, 3):
        assert head(prefix, drafted).tolist() == head(prefix, others).tolist()
    assert dependent_head(draft)(prefix, drafted) is draft(prefix + drafted)


def test_some_dependent_head_does_see_the_last_token_and_the_drafts():
    head = dependent_head(table_pair("generic", 3, 0)[1])
    assert head((0, 1), (2,)).tolist() != head((0, 2), (2,)).tolist() != head((0, 2), (1,)).tolist()


def expected_accepted(decoder, prompt):
    law = law_of(lambda draws: decoder.step(draws, decoder.init(prompt))[1].accepted)
    return sum(count * mass for count, mass in law.items())


@pytest.mark.parametrize("seed", range(4))
def test_heads_of_the_target_itself_are_never_rejected_if_dependent_and_are_if_not(seed):
    target = table_pair("generic", 3, seed)[0]
    task = Task(target, target, horizon=4)
    assert expected_accepted(hydra_heads.build(task, gamma=3), (0, 1)) == 3
    assert expected_accepted(medusa_heads.build(task, gamma=3), (0, 1)) < 3


@given(small, prompts(3), st.integers(0, 3), seeds)
def test_the_first_draft_of_a_look_ahead_pass_is_the_targets_own(task, prompt, look_ahead, seed):
    decoder = pass_look_ahead.build(task, look_ahead)
    for round_ in generate(decoder, prompt, Tape(seed)).rounds:
        assert round_.accepted >= 1 or round_.draft == ()
    draft = decoder.propose(Tape(seed), decoder.init(prompt))
    assert draft.pmfs[0].tolist() == task.target(prompt).tolist()


def test_masks_guess_behind_the_last_accepted_candidate():
    """The token added by a pass is not among what its masks have seen."""
    draft = table_pair("generic", 4, 3)[1]
    decoder = space.build(Task(always(pmf(1, 0, 0, 0)), draft, horizon=9), gamma=3)
    drafts = {decoder.propose(Replayed(()), decoder.init((0, 2, last))).tokens for last in range(4)}
    first = argmax(draft((0, 2)))
    second = argmax(draft((0, 2, first)))
    assert drafts == {(second, argmax(draft((0, 2, first, second))), *next(iter(drafts))[2:])}


def test_groups_of_masks_see_their_candidate_and_each_other_backwards():
    """K = 1: the last token, its mask, the candidate, its mask."""
    assert space.group_mask(1).astype(int).tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 1, 1]]
    assert space.position_ids(1, known=5).tolist() == [4, 5, 5, 6]


@pytest.mark.parametrize("k", range(5))
def test_of_k_plus_1_squared_positions_k_squared_are_masks_in_vain(k):
    mask = space.group_mask(k)
    assert mask.shape == ((k + 1) ** 2, (k + 1) ** 2)
    assert not np.triu(mask, 1).any()
    candidates = mask[:: k + 1, :: k + 1]
    assert candidates.tolist() == np.tril(np.ones((k + 1, k + 1), dtype=bool)).tolist()
    seen_by_candidates = mask[:: k + 1].any(axis=0)
    assert (~seen_by_candidates).sum() - k == k * k
