"""Exact rules for one draft: block verification, sample-and-match, shared noise, dropping repaired."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import Task, chain, generate, overlap
from reference.algorithms import (
    block_verification,
    confidence_dropping,
    gumbel_coupling,
    sample_and_match,
    speculative_sampling,
)
from reference.verifiers.block_verification import block_verification as verify_block
from reference.verifiers.block_verification import capped_ratios, pass_probability
from reference.verifiers.drop_unlikely import drop_unlikely
from reference.verifiers.gumbel_coupling import agreement_probability
from specverify.laws.draws import Tape
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law
from specverify.laws.model_strategies import prompts, tasks
from specverify.laws.tables import table_pair
from test_support.laws.rational import (
    P,
    Q,
    always,
    as_law,
    distance,
    examples,
    first_token,
    law_of,
    pmf,
    project,
    vector,
)

CANONICAL = Task(always(P), always(Q), horizon=2)
weights = st.lists(st.integers(0, 6), min_size=3, max_size=4).filter(any)
pairs = st.tuples(weights, weights).filter(lambda pair: len(pair[0]) == len(pair[1]))


def normal(values):
    return pmf(*(Fraction(value, sum(values)) for value in values))


def round_law(decoder, prompt, function):
    return law_of(lambda draws: function(decoder.step(draws, decoder.init(prompt))[1]))


def accepted_of_one(row, **options):
    return round_law(row.build(CANONICAL, gamma=1, **options), (0,), lambda done: done.accepted)[1]


def first_accepted(row, task, prompt, gamma):
    """Return P(the first i drafts are accepted), i = 0..gamma."""
    law = round_law(row.build(task, gamma=gamma), prompt, lambda done: done.accepted)
    return [sum(mass for count, mass in law.items() if count >= i) for i in range(gamma + 1)]


# Block verification


def joint_masses(task, prefix, gamma):
    """Return i -> the sums over texts of prod min(p, q), of w, and of min(p(x), q(x))."""
    one = Fraction(1)
    level = {(): (one, one, one, one)}
    sums = [(one, one, one)]
    for _ in range(gamma):
        after = {}
        for text, (token, block, p_text, q_text) in level.items():
            rows = zip(task.target(prefix + text), task.draft(prefix + text), strict=True)
            for v, (p, q) in enumerate(rows):
                masses = (token * min(p, q), min(block * p, q_text * q), p_text * p, q_text * q)
                assert masses[0] <= masses[1] <= min(masses[2:])
                after[(*text, v)] = masses
        level = after
        found = [(token, block, min(p, q)) for token, block, p, q in level.values()]
        sums.append(tuple(map(sum, zip(*found, strict=True))))
    return sums


@examples(15)
@given(task=tasks(3, 3, 4), prompt=prompts(3))
def test_token_verification_accepts_at_most_what_block_does_and_that_at_most_full_information(task, prompt):
    """P(first i accepted) is the sum of prod min(p, q) for tokens and of w for blocks, at every i."""
    task, gamma = task._replace(eos=()), min(2, task.horizon - 1)
    token, block, _ = zip(*joint_masses(task, prompt, gamma), strict=True)
    assert first_accepted(speculative_sampling, task, prompt, gamma) == list(token)
    assert first_accepted(block_verification, task, prompt, gamma) == list(block)


@pytest.mark.parametrize(
    ("gamma", "token", "block", "full"),
    [(2, "10/9", "11/9", "12/9"), (4, 1.604938, 2.049383, 2.370370), (8, 1.921963, 3.106843, 3.903064)],
)
def test_the_context_free_example_of_the_paper(gamma, token, block, full):
    """Expected accepted drafts of token, block and full-information verification, p = (1/3, 2/3), q = (2/3, 1/3)."""
    task = Task(always(pmf("1/3", "2/3")), always(pmf("2/3", "1/3")), horizon=gamma + 1)
    found = [sum(column[1:]) for column in zip(*joint_masses(task, (0,), gamma), strict=True)]
    if gamma == 2:
        assert found == [Fraction(value) for value in (token, block, full)]
    else:
        assert [round(float(value), 6) for value in found] == [token, block, full]
    if gamma <= 4:
        assert sum(first_accepted(block_verification, task, (0,), gamma)[1:]) == found[1]


@pytest.mark.parametrize("shape", ["generic", "zeros", "disjoint", "equal"])
def test_a_block_of_one_is_speculative_sampling_and_an_empty_one_is_the_target(shape):
    task = Task(*table_pair(shape, 3, 0), horizon=3)
    for gamma in (0, 1):
        decoders = [row.build(task, gamma=gamma) for row in (block_verification, speculative_sampling)]
        laws = [round_law(decoder, (0, 1), lambda done: (done.tokens, done.accepted)) for decoder in decoders]
        assert laws[0] == laws[1]


def test_a_block_keeps_its_text_and_its_law_under_a_joint_count():
    """P(tau >= i and the first i drafts are x) is w(x)."""
    task = Task(*table_pair("generic", 2, 3), horizon=4)
    decoder = block_verification.build(task, gamma=3)
    law = round_law(decoder, (0,), lambda done: done.tokens[: done.accepted])
    w = {(): (Fraction(1), Fraction(1))}
    for _ in range(3):
        for text, (mass, q_text) in [item for item in w.items() if len(item[0]) == max(map(len, w))]:
            for v, (p, q) in enumerate(zip(task.target((0, *text)), task.draft((0, *text)), strict=True)):
                w[(*text, v)] = (min(mass * p, q_text * q), q_text * q)
    for text, (mass, _) in w.items():
        assert sum(other for kept, other in law.items() if kept[: len(text)] == text) == mass


def test_block_verification_takes_deterministic_drafts():
    guesses = chain((0, 1), (None, None))
    law = law_of(lambda draws: verify_block(draws, always(P), (), guesses).tokens[:1])
    assert law == {(token,): mass for token, mass in as_law(P).items()}


# Sample and match


def test_the_acceptance_of_the_rows_on_the_known_pair():
    assert accepted_of_one(speculative_sampling) == overlap(P, Q) == Fraction(3, 5)
    assert accepted_of_one(block_verification) == Fraction(3, 5)
    assert accepted_of_one(sample_and_match) == (P * Q).sum() == Fraction(13, 50)
    assert accepted_of_one(gumbel_coupling) == agreement_probability(P, Q) == Fraction(18, 35)


@given(pairs)
def test_sample_and_match_accepts_no_more_than_a_maximal_coupling(pair):
    p, q = map(normal, pair)
    assert (p * q).sum() <= overlap(p, q)


def test_a_point_draft_can_beat_a_sampled_one():
    p, q = pmf(".9", ".1"), pmf(".55", ".45")
    assert (p[0], overlap(p, q)) == (Fraction(9, 10), Fraction(13, 20))


# Shared noise


@examples(20)
@given(tasks(3, 1, 8), prompts(3), st.integers(0, 999), st.integers(0, 4))
def test_the_text_on_one_noise_is_the_same_for_every_drafter(task, prompt, seed, gamma):
    """It is also the text that the target reads off the noise alone."""
    other = task._replace(draft=always(normal([1, 5, 2])))
    texts = {
        generate(gumbel_coupling.build(model, gamma=length), prompt, Tape(seed)).tokens
        for model in (task, other, task._replace(draft=task.target))
        for length in (gamma, 2)
    }
    noise, alone = Tape(seed), ()
    while len(alone) < task.horizon and not (alone and alone[-1] in task.eos):
        tokens = prompt + alone
        alone = (*alone, noise.categorical(task.target(tokens), ("noise", len(tokens))))
    assert texts == {alone}


def test_speculative_sampling_does_depend_on_its_drafter():
    other = CANONICAL._replace(draft=always(P))
    draws = [
        [generate(speculative_sampling.build(task, gamma=1), (0,), Tape(seed)).tokens for seed in range(40)]
        for task in (CANONICAL, other)
    ]
    assert draws[0] != draws[1]


@examples(10)
@given(tasks(3, 2, 6), prompts(3))
def test_on_one_noise_equal_models_never_disagree(task, prompt):
    decoder = gumbel_coupling.build(task._replace(draft=task.target), gamma=2)
    for seed in range(4):
        assert all(done.accepted == done.reached for done in generate(decoder, prompt, Tape(seed)).rounds)


# Dropping, repaired


def test_dropping_is_repaired_on_the_known_pair():
    """Threshold 1/5 drops token 2: kept mass min(1/5, 3/5) + min(3/10, 3/10); threshold 1/2 also drops token 1."""
    for threshold, kept in ((Fraction(1, 5), Fraction(1, 2)), (Fraction(1, 2), Fraction(1, 5)), (0, Fraction(3, 5))):
        assert vector(law_of(first_token(drop_unlikely(threshold), P, Q)), 3) == P.tolist()
        assert accepted_of_one(confidence_dropping, threshold=threshold) == kept


def test_dropping_without_the_repair_is_biased():
    """Token 0 dropped and p sampled: (.12, .48, .40) at TV .18, as the closed form says."""
    dropped = {0}
    spare = sum(max(q - p, 0) for v, (p, q) in enumerate(zip(P, Q, strict=True)) if v not in dropped)
    mass = sum(Q[v] for v in dropped)
    out = [(v not in dropped) * min(P[v], Q[v]) + mass * P[v] + spare * (v == 2) for v in range(3)]
    assert out == pmf(".12", ".48", ".40").tolist()
    assert distance(dict(enumerate(out)), as_law(P)) == Fraction(".18")


@examples(10)
@given(task=tasks(3, 2, 3), prompt=prompts(3))
def test_dropping_nothing_is_speculative_sampling_and_dropping_everything_is_the_target(task, prompt):
    plain = round_law(speculative_sampling.build(task, gamma=2), prompt, lambda done: (done.tokens, done.accepted))
    nothing = confidence_dropping.build(task, threshold=0, gamma=2)
    assert round_law(nothing, prompt, lambda done: (done.tokens, done.accepted)) == plain
    everything = confidence_dropping.build(task._replace(draft=always(pmf(*(["1/3"] * 3)))), threshold=1, gamma=2)
    assert project(round_law(everything, prompt, lambda done: done.accepted), lambda count: count) == {0: 1}
    assert decoder_law(everything, prompt).probabilities == target_law(task, prompt)


# Edges


def test_a_draft_that_neither_model_can_emit_weighs_nothing_in_a_block():
    """It cannot have been drawn from q; the ratio 0/0 is 0, and 1 where p is positive."""
    impossible, possible = pmf(0, 1, 0), pmf("1/2", "1/2", 0)
    assert capped_ratios([impossible], [impossible], (0,)) == [1, 0]
    assert capped_ratios([possible], [impossible], (0,)) == [1, 1]
    assert capped_ratios([possible, P], [possible, impossible], (2, 0)) == [1, 0, 0]


def test_a_coin_of_a_block_lands_heads_where_nothing_is_left_to_replace():
    assert pass_probability(Fraction(1), P, P) == 1
    assert pass_probability(Fraction(1), P, Q) == 1
    assert pass_probability(Fraction(1, 2), P, P) == 0
    assert pass_probability(Fraction(1, 2), P, pmf(1, 0, 0)) == Fraction(4, 9)
