"""Where a rule with a declared bias is speculative sampling, greedy decoding or lossless, and where rollback is not."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import Task, greedy_law
from reference.algorithms import (
    accept_if_likelier,
    bild,
    bild_released,
    clamped_scalar_residual,
    judge_decoding,
    lenience,
    mentored_decoding,
    resample_from_target,
    specdec,
    speculative_cascade,
    speculative_sampling,
)
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law
from specverify.laws.model_strategies import prompts, tasks
from specverify.laws.tables import table_pair
from test_support.laws.rational import Q, always, examples, law_of, pmf

LIMITS = [
    (lenience, {"lenience": 1}),
    (mentored_decoding, {"clip": 1}),
    (judge_decoding, {"correct": ()}),
    (speculative_cascade, {"rule": "diff", "alpha": -1}),
    (speculative_cascade, {"rule": "token-v2", "alpha": -1}),
]


@pytest.mark.parametrize(("row", "options"), LIMITS)
@examples(10)
@given(task=tasks(3, 2, 3), prompt=prompts(3))
def test_a_rule_that_is_strict_is_speculative_sampling(row, options, task, prompt):
    def rounds(decoder):
        return law_of(lambda draws: decoder.step(draws, decoder.init(prompt))[1])

    assert rounds(row.build(task, gamma=2, **options)) == rounds(speculative_sampling.build(task, gamma=2))
    assert row.declared_law(task, prompt, gamma=2, **options) == target_law(task, prompt)


@examples(10)
@given(task=tasks(2, 2, 5), prompt=prompts(2))
def test_the_clamped_scalar_residual_is_lossless_for_two_tokens(task, prompt):
    assert clamped_scalar_residual.declared_law(task, prompt, gamma=2) == target_law(task, prompt)


@pytest.mark.parametrize("row", [resample_from_target, accept_if_likelier, clamped_scalar_residual])
def test_a_target_that_is_its_own_draft_hides_the_bias(row):
    target, _ = table_pair("generic", 3, 0)
    task = Task(target, target, horizon=4)
    assert row.declared_law(task, (0,), gamma=2) == target_law(task, (0,))


@examples(15)
@given(task=tasks(3, 2, 6), prompt=prompts(3), gamma=st.integers(0, 3))
def test_deterministic_rules_at_their_strict_end_are_greedy_decoding(task, prompt, gamma):
    wanted = greedy_law(task, prompt)
    strict = [
        specdec.build(task, beta=1, tau=3.0, gamma=gamma),
        bild.build(task, fallback=0, rollback=0.0, gamma=gamma),
        bild.build(task, fallback=2, rollback=9.0, gamma=gamma),
        bild_released.build(task, fallback=2, rollback=9.0, gamma=gamma),
    ]
    assert [decoder_law(decoder, prompt).probabilities for decoder in strict] == [wanted] * len(strict)


def test_zero_tolerance_is_greedy_where_nothing_ties():
    target, draft = table_pair("peaked", 3, 1)
    task = Task(target, draft, horizon=4)
    assert decoder_law(specdec.build(task, beta=3, tau=0.0, gamma=2), (0,)).probabilities == greedy_law(task, (0,))


def test_a_larger_beta_or_tau_never_shortens_the_accepted_prefix():
    for seed in range(12):
        task = Task(*table_pair("generic", 3, seed), horizon=5)

        def accepted(beta, tau, task=task):
            decoder = specdec.build(task, beta=beta, tau=tau, gamma=4)
            (count,) = law_of(lambda draws: decoder.step(draws, decoder.init((0,)))[1].accepted)
            return count

        counts = [[accepted(beta, tau) for tau in (0.0, 0.5, 1.0, 2.0)] for beta in (1, 2, 3)]
        assert all(row == sorted(row) for row in (*counts, *map(list, zip(*counts, strict=True))))


def test_the_released_rollback_lets_a_later_mistake_survive_and_the_paper_s_does_not():
    """Small tokens (0, 1), large argmaxes (0, 2): with rollback 0 token 1 survives the release, at probability 0."""
    target = {0: pmf("3/5", "2/5", 0), 1: pmf("2/5", 0, "3/5")}
    draft = {0: pmf(1, 0, 0), 1: pmf(0, 1, 0)}
    task = Task(lambda tokens: target[len(tokens) % 2], lambda tokens: draft[len(tokens) % 2], horizon=4)
    options = {"fallback": Fraction(1, 2), "rollback": 0.0, "gamma": 2}
    laws = [decoder_law(row.build(task, **options), (0,)).probabilities for row in (bild, bild_released)]
    assert laws == [{(2, 0, 2, 0): 1}, {(2, 0, 1, 0): 1}]
    assert laws[0] == greedy_law(task, (0,))
    assert target[1][1] == 0
    assert not bild_released.ALGORITHM.claims


def test_unlimited_rollback_keeps_the_small_tokens_and_then_asks_once():
    task = Task(always(pmf(0, "1/4", "3/4")), always(Q), horizon=6)
    law = decoder_law(bild.build(task, fallback=0, rollback=math.inf, gamma=4), (0,)).probabilities
    assert law == {(0, 0, 0, 0, 2, 2): 1}
