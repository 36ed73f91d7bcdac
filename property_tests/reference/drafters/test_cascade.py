"""Cascades of drafters, inside one another and one after the other: exact inner rounds, shortcuts, limits."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import Task, model_drafter, prompt_lookup_drafter
from reference.algorithms import cascade_drafting, prompt_lookup, speculative_sampling, triforce, triforce_released
from reference.coupling import accept_probability
from reference.drafters.cascade import horizontal, vertical
from reference.lengths.constant import never
from reference.verifiers.accept_or_replace import accept_or_replace
from reference.verifiers.speculative_sampling import speculative_sampling as speculative
from specverify.laws.draws import Replayed, Tape
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law
from specverify.laws.model_strategies import prompts, tasks
from test_support.laws.comparison import rounds, same_law, seeds, small
from test_support.laws.rational import P, Q, always, as_law, distance, examples, law_of, pmf, project, vector


def drafted_law(drafter, prefix, gamma):
    return law_of(lambda draws: drafter.propose(draws, drafter.init(prefix), prefix, gamma, never).tokens)


@examples(25)
@given(small, prompts(3), st.integers(0, 3), st.integers(0, 3))
def test_an_exact_inner_round_drafts_samples_of_the_middle_model(task, prefix, gamma, inner):
    own = drafted_law(model_drafter(task.draft), prefix, gamma)
    by_model = vertical(task.draft, model_drafter(task.target), inner, speculative)
    assert drafted_law(by_model, prefix, gamma) == own
    by_lookup = vertical(task.draft, prompt_lookup_drafter(2), inner, speculative)
    assert drafted_law(by_lookup, prefix, gamma) == own


@examples(2)
@given(tasks(2), prompts(2))
def test_a_chain_of_four_models_drafts_samples_of_the_one_that_verifies_last(task, prefix):
    """The drafter of a drafter of a drafter: each level declares its own model, and has its law."""
    lowest = vertical(always(pmf("1/3", "2/3")), model_drafter(task.target), 1, speculative)
    middle = vertical(task.draft, lowest, 1, speculative)
    highest = vertical(always(pmf("3/4", "1/4")), middle, 2, speculative)
    own = drafted_law(model_drafter(always(pmf("3/4", "1/4"))), prefix, 2)
    assert drafted_law(highest, prefix, 2) == own


SMALL, MIDDLE, LARGE = pmf(".7", ".1", ".2"), pmf(".3", ".5", ".2"), pmf(".2", ".3", ".5")
SHORTCUT = accept_or_replace(
    accept=lambda prefix, p, q, token: accept_probability(p, q, token), replacement=lambda p, q, token: p
)


def test_an_inner_shortcut_drafts_from_another_law():
    shortcut = vertical(always(MIDDLE), model_drafter(always(SMALL)), 1, SHORTCUT)
    law = project(drafted_law(shortcut, (0,), 1), lambda tokens: tokens[0])
    assert vector(law, 3) == pmf(".42", ".30", ".28").tolist()


def test_the_released_inner_stage_has_its_known_law_and_bias():
    """A middle model that is not p: p after a text of two tokens, q' where the first is forgotten."""

    def target(tokens):
        return MIDDLE if tokens[0] == 1 else LARGE

    task = Task(target, always(SMALL), horizon=2)
    law = decoder_law(triforce_released.build(task, gamma=1, forget=1), (0, 1)).probabilities
    first = project(law, lambda new: new[0])
    assert vector(first, 3) == pmf(".28", ".18", ".54").tolist()
    assert distance(first, as_law(LARGE)) == Fraction(".12")
    assert law == triforce_released.declared_law(task, (0, 1), gamma=1, forget=1)
    exact = decoder_law(triforce.build(task, gamma=1, forget=1), (0, 1)).probabilities
    assert exact == target_law(task, (0, 1))


@examples(15)
@given(task=tasks(2, 2, 4), prompt=prompts(2))
def test_the_released_law_is_declared_for_longer_blocks(task, prompt):
    law = decoder_law(triforce_released.build(task, gamma=3), prompt).probabilities
    assert law == triforce_released.declared_law(task, prompt, gamma=3)


@given(small, prompts(3), seeds)
def test_a_partial_cache_that_holds_everything_is_never_rejected(task, prompt, seed):
    decoder = triforce.build(task, gamma=2, forget=0)
    assert all(round_.accepted == round_.reached for round_ in rounds(decoder, prompt, seed))


@examples(25)
@given(tasks(3, 2, 4), prompts(3))
def test_a_cascade_of_one_stage_is_that_stage(task, prompt):
    looked_up = cascade_drafting.build(task, large=0, small=2, max_ngram=2)
    alone = prompt_lookup.build(task, max_ngram=2, gamma=2)
    states = looked_up.init(prompt), alone.init(prompt)
    assert looked_up.propose(Replayed(()), states[0]) == alone.propose(Replayed(()), states[1])
    assert same_law(looked_up, alone, prompt)
    without = cascade_drafting.build(task, large=2, small=0, inner=0)
    assert same_law(without, speculative_sampling.build(task, gamma=2), prompt)


def test_later_tokens_come_from_the_later_stage():
    drafter = horizontal(((model_drafter(always(pmf(1, 0))), 2), (model_drafter(always(pmf(0, 1))), 3)))
    draft = drafter.propose(Tape(0), drafter.init((0,)), (0,), 4, never)
    assert draft.tokens == (0, 0, 1, 1)
    assert draft.parents == (-1, 0, 1, 2)


def test_impossible_cascades_are_refused():
    with pytest.raises(ValueError, match="inner_gamma is -1, expected at least 0"):
        vertical(always(P), model_drafter(always(Q)), -1, speculative)
    with pytest.raises(ValueError, match=r"counts are \(1, -1\), expected at least 0"):
        horizontal(((model_drafter(always(P)), 1), (model_drafter(always(Q)), -1)))
