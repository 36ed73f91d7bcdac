"""Every registry row in every example: its law, its claims, its limits, its bookkeeping."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import (
    ALGORITHMS,
    AcceptanceStatistics,
    Claim,
    Task,
    acceptance_statistics,
    generate,
)
from reference.algorithms import napd, nasd, nasd_seed_rule, speculative_sampling
from specverify.laws.draws import FromHypothesis, Tape
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law
from specverify.laws.model_strategies import prompts, tasks
from specverify.laws.tables import one_hot_rows, table_pair
from test_support.laws.rational import P, Q, always, as_law, distance, examples, law_of, pmf, project


def rows(wanted=lambda row: True):
    """Run a test for every registry row that is wanted, by name."""
    found = [row for row in ALGORITHMS if wanted(row)]
    return pytest.mark.parametrize("row", found, ids=lambda row: row.name)


def examples_of(row):
    """Return the options of a row: drawn one of them for each example."""
    return st.sampled_from(row.examples)


small_tasks = st.one_of(tasks(2, 2, 5), tasks(3, 2, 3))


# Laws


@rows(lambda row: Claim.LOSSLESS in row.claims)
@examples(12)
@given(task=small_tasks, prompt=prompts(2), data=st.data())
def test_the_law_of_a_lossless_row_is_the_target(row, task, prompt, data):
    options = data.draw(examples_of(row))
    assert decoder_law(row.build(task, **options), prompt).probabilities == target_law(task, prompt)


@rows(lambda row: row.declared_law)
@examples(12)
@given(task=small_tasks, prompt=prompts(2), data=st.data())
def test_the_law_of_a_biased_row_is_the_declared_one(row, task, prompt, data):
    options = data.draw(examples_of(row))
    declared = row.declared_law(task, prompt, **options)
    assert decoder_law(row.build(task, **options), prompt).probabilities == declared
    assert sum(declared.values()) == 1


@rows()
def test_every_row_either_claims_the_law_of_the_target_or_declares_another(row):
    assert (Claim.LOSSLESS in row.claims) == (row.declared_law is None)
    assert row.examples


@pytest.mark.thorough(keep=3)
@rows(lambda row: Claim.GREEDY in row.claims)
@examples(8)
@given(task=tasks(3, 1, 5), prompt=prompts(3), data=st.data())
def test_a_greedy_row_emits_the_argmax_text_on_one_hot_targets(row, task, prompt, data):
    options = data.draw(examples_of(row))
    task = task._replace(target=one_hot_rows(task.target))
    law = decoder_law(row.build(task, **options), prompt).probabilities
    assert law == target_law(task, prompt)
    assert list(law.values()) == [1]


@pytest.mark.thorough(keep=3)
@rows(lambda row: Claim.SUPPORTED in row.claims)
@examples(8)
@given(task=tasks(3, 1, 8), prompt=prompts(3), data=st.data())
def test_a_supported_row_emits_no_impossible_token(row, task, prompt, data):
    new = generate(row.build(task, **data.draw(examples_of(row))), prompt, FromHypothesis(data)).tokens
    assert all(task.target(prompt + new[:i])[token] > 0 for i, token in enumerate(new))


# Limits


@pytest.mark.thorough(keep=4)
@rows()
@examples(8)
@given(task=tasks(3, 1, 10), prompt=prompts(3), data=st.data())
def test_an_output_ends_at_its_first_eos_or_at_the_horizon(row, task, prompt, data):
    new = generate(row.build(task, **data.draw(examples_of(row))), prompt, FromHypothesis(data)).tokens
    ends = [i for i, token in enumerate(new) if token in task.eos]
    assert ends in ([], [len(new) - 1])
    assert ends or len(new) == task.horizon


IN_ANY_ORDER = {"spiffy", "self-speculative-diffusion"}
"""Rows whose round writes a block in several passes, not from left to right: drafts are no prefix of its tokens."""
WITHOUT_A_BONUS = {
    "reward-guided",
    "bild-released",
    "edge-cloud-timeout",
    "spec-rl",
    "lockstep-batch",
    "self-speculative-diffusion",
}
"""Drafts may end a round of these: no token of the target has to follow them."""


@rows()
@examples(4)
@given(task=tasks(3), prompt=prompts(3), seed=st.integers(0, 99), data=st.data())
def test_horizons_of_zero_and_one(row, task, prompt, seed, data):
    options = data.draw(examples_of(row))
    nothing = generate(row.build(task._replace(horizon=0), **options), prompt, Tape(seed))
    assert (nothing.tokens, nothing.rounds) == ((), ())
    (only,) = generate(row.build(task._replace(horizon=1), **options), prompt, Tape(seed)).rounds
    assert len(only.tokens) == 1
    assert row.name in WITHOUT_A_BONUS or (only.draft, only.accepted, only.reached) == ((), 0, 0)


FLAT = Task(always(P), always(Q), horizon=4)


@rows()
def test_a_prompt_of_one_token_is_enough(row):
    assert all(len(generate(row.build(FLAT, **options), (0,), Tape(1)).tokens) == 4 for options in row.examples)


@rows()
def test_an_empty_prompt_is_refused(row):
    for options in row.examples:
        with pytest.raises(ValueError, match="the prompt is empty, expected at least one token id"):
            row.build(FLAT, **options).init(())


@rows()
def test_a_negative_horizon_is_refused(row):
    for options in row.examples:
        with pytest.raises(ValueError, match="horizon is -1, expected a number of new tokens >= 0"):
            row.build(FLAT._replace(horizon=-1), **options).init((0,))


@rows()
def test_a_finished_decoder_takes_no_step(row):
    for options in row.examples:
        decoder = row.build(FLAT._replace(horizon=0), **options)
        with pytest.raises(ValueError, match="the decoder has finished, expected a state with tokens remaining"):
            decoder.step(Tape(0), decoder.init((0,)))


@rows()
def test_a_row_without_draft_model_decodes_or_says_that_it_needs_one(row):
    for options in row.examples:
        try:
            decoder = row.build(Task(always(P), horizon=2), **options)
        except ValueError as error:
            assert str(error) == "the task has no draft model, expected a callable from tokens to a pmf"  # noqa: PT017
        else:
            assert len(generate(decoder, (0,), Tape(0)).tokens) == 2


@rows(lambda row: "gamma" in row.examples[0])
def test_a_gamma_that_counts_nothing_is_refused(row):
    for gamma in (-1, True):
        with pytest.raises(ValueError, match=f"gamma is {gamma}, expected an integer >= 0"):
            row.build(FLAT, **{**row.examples[0], "gamma": gamma})


# Bookkeeping


@pytest.mark.thorough(keep=4)
@rows()
@examples(8)
@given(task=tasks(3, 1, 10), prompt=prompts(3), data=st.data())
def test_rounds_add_up(row, task, prompt, data):
    generation = generate(row.build(task, **data.draw(examples_of(row))), prompt, FromHypothesis(data))
    rounds, new = generation.rounds, generation.tokens
    assert sum((round_.tokens for round_ in rounds), ()) == new
    for round_ in rounds:
        assert 0 <= round_.accepted <= round_.reached <= len(round_.draft)
        if row.name not in IN_ANY_ORDER:
            assert round_.tokens[: round_.accepted] == round_.draft[: round_.accepted]
            assert round_.reached - round_.accepted in {0, 1}
    cut = bool(new) and new[-1] in task.eos
    uncut = rounds[:-1] if cut else rounds
    extra = {len(round_.tokens) - round_.accepted for round_ in uncut}
    totals = generation.statistics
    assert (totals.rounds, totals.tokens) == (len(rounds), len(new))
    if row.name not in IN_ANY_ORDER:
        assert extra <= ({0, 1} if row.name in WITHOUT_A_BONUS else {1})
        assert cut or 0 in extra or totals.tokens == totals.accepted + totals.rounds


@pytest.mark.thorough(keep=4)
@rows()
@examples(5)
@given(task=tasks(3, 2, 8), prompt=prompts(3), seed=st.integers(0, 999), data=st.data())
def test_two_builds_of_a_row_agree_round_by_round_on_one_tape(row, task, prompt, seed, data):
    options = data.draw(examples_of(row))
    one, other = (generate(row.build(task, **options), prompt, Tape(seed)) for _ in range(2))
    assert one == other


def test_nothing_counted_has_no_rates():
    nothing = acceptance_statistics(())
    assert nothing == (0, 0, 0, 0, 0)
    assert (nothing.accepted_per_drafted, nothing.acceptance_rate, nothing.tokens_per_round) == (None, None, None)


def test_the_two_acceptance_rates_are_different_quantities():
    counted = AcceptanceStatistics(rounds=2, tokens=5, drafted=10, reached=4, accepted=3)
    assert (counted.accepted_per_drafted, counted.acceptance_rate, counted.tokens_per_round) == (0.3, 0.75, 2.5)


def expected_accepted(alpha, gamma):
    decoder = speculative_sampling.build(
        Task(always(pmf(alpha, 1 - alpha)), always(pmf(1, 0)), horizon=gamma + 1), gamma=gamma
    )
    law = law_of(lambda draws: decoder.step(draws, decoder.init((0,)))[1].accepted)
    return sum(count * mass for count, mass in law.items())


def test_accepted_per_drafted_is_not_the_acceptance_rate():
    """A rate of 4/5 and gamma 5: 2.68928 accepted of 5, a share of .5379; 3.689 tokens per round, not 5."""
    alpha, gamma = Fraction(4, 5), 5
    found = expected_accepted(alpha, gamma)
    assert found == alpha * (1 - alpha**gamma) / (1 - alpha)
    assert (round(float(found / gamma), 4), round(float(found + 1), 3)) == (0.5379, 3.689)


# What single rows are known for


def test_the_seed_rule_is_deterministic_where_the_guess_is_the_argmax():
    task = Task(always(pmf(".4", ".3", ".3")), horizon=2)
    options = {"order": 2, "gamma": 1}
    law = decoder_law(nasd_seed_rule.build(task, **options), (0, 0)).probabilities
    first = project(law, lambda new: new[0])
    assert first == {0: 1}
    assert distance(first, as_law(task.target(()))) == Fraction(3, 5)
    assert law == nasd_seed_rule.declared_law(task, (0, 0), **options)


@examples(20)
@given(tasks(3, 2, 6), prompts(3), st.integers(2, 3), st.integers(0, 3))
def test_both_n_gram_rows_emit_the_same_greedy_text(task, prompt, order, gamma):
    task = task._replace(target=one_hot_rows(task.target))
    one = decoder_law(nasd.build(task, order=order, gamma=gamma, filler_top_k=1), prompt)
    other = decoder_law(napd.build(task, order=order, gamma=gamma), prompt)
    assert one.probabilities == other.probabilities


def test_the_n_gram_rows_break_ties_as_their_releases_do():
    """After (0, 2, 0, 1, 0) both 1 and 2 have followed 0 once."""
    task = Task(always(P), horizon=2)
    decoders = [row.build(task, order=2, gamma=1) for row in (nasd, napd)]
    drafts = [decoder.propose(Tape(0), decoder.init((0, 2, 0, 1, 0))).tokens for decoder in decoders]
    assert drafts == [(2,), (1,)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", ["generic", "zeros", "peaked", "disjoint", "equal"])
def test_the_first_i_drafts_are_accepted_with_the_mass_of_their_minima(shape, seed):
    """P(first i accepted) is the sum over texts of the product of min(p, q), and does not depend on gamma."""
    target, draft = table_pair(shape, 2, seed)

    def minima(prefix, i):
        if i == 0:
            return Fraction(1)
        rows = zip(target(prefix), draft(prefix), strict=True)
        return sum(min(row) * minima((*prefix, token), i - 1) for token, row in enumerate(rows))

    for gamma in range(4):
        decoder = speculative_sampling.build(Task(target, draft, horizon=4), gamma=gamma)
        law = law_of(lambda draws, decoder=decoder: decoder.step(draws, decoder.init((0, 1)))[1].accepted)
        found = [sum(mass for count, mass in law.items() if count >= i) for i in range(gamma + 1)]
        assert found == [minima((0, 1), i) for i in range(gamma + 1)]
        assert found == sorted(found, reverse=True)


@given(tasks(3, 2, 6), prompts(3))
def test_a_target_that_is_its_own_draft_rejects_nothing(task, prompt):
    decoder = speculative_sampling.build(task._replace(draft=task.target), gamma=2)
    for seed in range(4):
        rounds = generate(decoder, prompt, Tape(seed)).rounds
        assert all(round_.accepted == round_.reached for round_ in rounds)
