"""Where drafts come from: heads, layers, cascades, phrases, pipelines, gates. What each may see and reduces to."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rational import P, Q, always, as_law, distance, examples, law_of, pmf, project, vector

from reference import (
    Sampled,
    Task,
    argmax,
    chain,
    chain_decoder,
    constant,
    generate,
    greedy_law,
    model_drafter,
    prompt_lookup_drafter,
)
from reference.algorithms import (
    autoregressive,
    cascade_drafting,
    confidence_stopping,
    draft_and_verify,
    gated_drafting,
    hydra_heads,
    layerskip,
    medusa_heads,
    mtp,
    ouroboros,
    pass_look_ahead,
    ppd,
    prompt_lookup,
    rest,
    space,
    speculative_sampling,
    triforce,
    triforce_released,
)
from reference.coupling import accept_probability
from reference.drafters.cascade import horizontal, vertical
from reference.drafters.head_chain import dependent_head, independent_heads, look_ahead_heads
from reference.drafters.phrases import agreements, phrases_drafter, replaced
from reference.drafters.self_draft import partial_model
from reference.lengths.adaptive_threshold import Schedule, Threshold, adaptive_threshold, moved
from reference.lengths.constant import never
from reference.lengths.gating import Gate, dropout_variance, entropy, gated, hard_ratio, is_hard, margin
from reference.verifiers.accept_or_replace import accept_or_replace
from reference.verifiers.speculative_sampling import speculative_sampling as speculative
from specverify.draws import Replayed, Tape
from specverify.enumeration import decoder_law
from specverify.law import target_law
from specverify.strategies import prompts, tasks
from specverify.tables import one_hot_rows, table_pair

seeds = st.integers(0, 1000)
small = tasks(3, 2, 6)


def rounds(decoder, prompt, seed):
    """Return what each round did, without its trace."""
    return [round_._replace(trace=()) for round_ in generate(decoder, prompt, Tape(seed)).rounds]


def same_law(decoder, other, prompt):
    return decoder_law(decoder, prompt).probabilities == decoder_law(other, prompt).probabilities


# Heads


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
    after = moved(state, EXACT, drafted, accepted, 8)
    assert after.matched == Fraction(matched) / 2 + Fraction(accepted, 2 * drafted)
    assert after.value == Fraction(threshold)


def test_a_round_without_draft_leaves_the_threshold_alone():
    assert moved(HALF, EXACT, 0, 0, 8) == HALF


@given(small, prompts(3), seeds)
def test_the_threshold_travels_in_the_state(task, prompt, seed):
    decoder = draft_and_verify.build(task, gamma=2, threshold=Fraction(1, 2), schedule=EXACT, skipped=1, layers=2)
    draws, state, expected = Tape(seed), decoder.init(prompt), HALF
    while state.remaining:
        assert state.length == expected
        state, done = decoder.step(draws, state)
        expected = moved(expected, EXACT, len(done.draft), done.accepted, 2)


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


# Cascades


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


# Phrases and retrieval

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
    assert replaced(((1, 0), (2, 0)), (1, 0), (2,), 3) == ((2, 0), (1, 2))


def test_runs_of_agreement_behind_the_first_miss_become_phrases():
    assert agreements((0, 1, 2, 1, 0), (1, 1, 2, 0, 0), start=1) == [(1, 2)]
    assert agreements((0, 1, 2), (0, 1, 2), start=3) == []


@examples(20)
@given(tasks(3, 1, 4), st.permutations((0, 1, 2)))
def test_an_empty_datastore_and_a_text_without_repeats_draft_nothing_at_first(task, prompt):
    decoder = rest.build(task, datastore=())
    assert decoder.propose(Replayed(()), decoder.init(tuple(prompt))).tokens == ()
    assert same_law(decoder, autoregressive.build(task), tuple(prompt))


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


# Gates


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
