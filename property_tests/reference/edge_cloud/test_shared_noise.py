"""Noise that edge and cloud share: its races, the law and the paths of a session over it, and planted bugs."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import Sampled, Task, accepted_ratio, as_pmf, confidence, constant, generate, residual
from reference.algorithms import edge_cloud_gumbel
from reference.edge_cloud.decoder import edge_cloud_decoder
from reference.edge_cloud.edge import EdgeState, prepared
from reference.edge_cloud.gated import gated_decoder
from reference.edge_cloud.link import Service, in_memory
from reference.edge_cloud.messages import LARGEST_SEED, Open, Verify
from reference.edge_cloud.modes import MODES
from reference.edge_cloud.over_http import HttpLink
from reference.edge_cloud.shared_noise import DrawnNoise, SeededNoise
from reference.edge_cloud.wire import decode, encode
from reference.lengths.gating import Gate
from reference.verifiers.gumbel_coupling import agreement_probability
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law
from specverify.laws.model_strategies import prompts, tasks
from specverify.laws.tables import table_pair
from specverify.statistics import FitVerdict, confirmed_fit, goodness_of_fit, samples_for, stage_level
from test_support.laws.rational import P, Q, always, distance, examples, law_of, pmf, project
from test_support.reference.edge_cloud_processes import Running, http_draft, http_session, http_target
from test_support.reference.edge_cloud_sessions import (
    GOLDEN,
    DrawsAgain,
    Unasked,
    Unreliable,
    accepted_law,
    alone,
    edge_of,
    joint_law,
    loses_zeros,
    play,
    scripts,
    session,
)

weights = st.lists(st.integers(0, 6), min_size=3, max_size=4).filter(any)
pairs = st.tuples(weights, weights).filter(lambda pair: len(pair[0]) == len(pair[1]))
seeds = st.integers(0, LARGEST_SEED)


def normal(values):
    return pmf(*(Fraction(value, sum(values)) for value in values))


# Races


@given(seed=seeds, position=st.integers(0, 10**6), values=weights)
def test_a_winner_depends_on_seed_position_and_pmf_alone(seed, position, values):
    exact, noise = normal(values), SeededNoise(seed)
    winner = noise.winner(exact, position)
    assert exact[winner] > 0
    noise.winner(exact, position + 1)
    assert noise.winner(exact, position) == winner == SeededNoise(seed).winner(exact.astype(float), position)


def test_the_noise_is_what_the_generator_says():
    """-log of the upper 52 bits of Philox at the counter's highest word: this fixes the protocol."""
    words = np.random.Philox(key=11, counter=[0, 0, 0, 3]).random_raw(6).tolist()
    uniforms = [(word // 2**12 + 0.5) / 2**52 for word in words]
    assert SeededNoise(11).exponentials(3, 6).tolist() == pytest.approx([-np.log(u) for u in uniforms], rel=1e-15)


def test_positions_have_numbers_of_their_own():
    """The control counts positions by the generator's lowest word: neighbours then share most of their numbers."""
    noise = SeededNoise(3)
    assert len({value for t in range(50) for value in noise.exponentials(t, 9).tolist()}) == 50 * 9
    low = [np.random.Philox(key=3, counter=t).random_raw(9).tolist() for t in range(2)]
    assert len({*low[0], *low[1]}) < 18


@pytest.mark.parametrize("seed", [-1, LARGEST_SEED + 1, 0.5, None, True])
def test_what_is_no_seed_is_refused(seed):
    with pytest.raises(ValueError, match=r"the seed is .*, expected an integer in 0\.\."):
        SeededNoise(seed)


@pytest.mark.parametrize("over", ["positions", "seeds"])
def test_neighbouring_winners_fit_their_law_and_those_of_two_seeds_do_not(over):
    """Of (y, d, the next y), at one seed's positions or at one position of many sessions.

    False alarm 1e-6, any law at TV 0.1 refuted but for 1e-3; winners of two seeds agree in .26 instead of .51.
    """
    law = {(y, d, z): mass * P[z] for (y, d), mass in joint_law(P, Q).items() for z in range(3)}
    assert distance(law, {(y, d, z): P[y] * Q[d] * P[z] for y, d, z in np.ndindex(3, 3, 3)}) > Fraction(1, 5)
    number = samples_for(law, 0.1, stage_level(1e-6), 1e-3 / 2)

    def three(one, two, t):
        return one.winner(P, t), two.winner(Q, t), one.winner(P, t + 1)

    def sampled(other, count, seed):
        start = seed % 2**50
        if over == "positions":
            one, two = SeededNoise(start), SeededNoise(start + other)
            return Counter(three(one, two, 2 * i) for i in range(count))
        return Counter(three(SeededNoise(start + i), SeededNoise(start + i + other), 7) for i in range(count))

    fit = confirmed_fit(partial(sampled, 0), law, samples=number, false_alarm=1e-6, miss=1e-3, seed=7)
    assert fit.verdict is FitVerdict.FITS
    assert fit.control
    assert fit.detectable_tv <= 0.1
    assert goodness_of_fit(sampled(1, number, 8), law).p_value < stage_level(1e-6)


@given(pairs)
def test_the_joint_law_is_one_whichever_race_is_run_first(pair):
    p, q = map(normal, pair)

    def both(first, second, draws):
        noise = DrawnNoise(draws)
        winners = noise.winner(first, 5), noise.winner(second, 5)
        assert winners == (noise.winner(first, 5), noise.winner(second, 5))
        return winners

    assert {(y, d): mass for (d, y), mass in joint_law(q, p).items()} == joint_law(p, q)
    assert law_of(partial(both, p, q)) == joint_law(p, q)
    assert project(law_of(partial(both, q, p)), lambda pair: pair[::-1]) == joint_law(p, q)


def test_a_third_race_at_one_position_is_refused():
    noise = DrawnNoise(Sampled(0))
    for row, position in ((P, 1), (Q, 1), (P, 1), (Q, 2), (as_pmf([0.5, 0.5, 0.0]), 2)):
        noise.winner(row, position)
    with pytest.raises(ValueError, match="a third pmf races at position 1, expected those of p and q alone in a round"):
        noise.winner(residual(P, Q), 1)


# The law


@pytest.mark.parametrize("shape", ["generic", "zeros", "peaked", "ties", "point_draft"])
@pytest.mark.parametrize(("gamma", "eos"), [(1, ()), (1, (1,)), (2, ()), (2, (0,)), (3, ())])
def test_the_law_is_the_targets_over_several_rounds(shape, gamma, eos):
    task = Task(*table_pair(shape, 2 if gamma == 3 else 3, 5), eos=eos, horizon=4)
    law = decoder_law(edge_cloud_gumbel.build(task, gamma=gamma), (0, 1))
    assert law.coverage.rounds >= 2
    assert law.probabilities == target_law(task, (0, 1))


@examples(8)
@given(task=tasks(3, 1, 3), prompt=prompts(3), gamma=st.integers(0, 3))
def test_the_law_is_the_targets_for_any_tables(task, prompt, gamma):
    assert decoder_law(edge_cloud_gumbel.build(task, gamma=gamma), prompt).probabilities == target_law(task, prompt)


@examples(25)
@given(pairs)
def test_acceptance_is_the_agreement_of_the_coupling(pair):
    p, q = map(normal, pair)
    rate = agreement_probability(p, q)
    assert accepted_law(p, q).get(1, 0) == rate
    two = accepted_law(p, q, 2)
    assert (two.get(1, 0), two.get(2, 0)) == (rate * (1 - rate), rate**2)


def test_a_cloud_that_draws_again_keeps_the_law_because_it_draws_the_same():
    """The very cloud and link that bend the law of the modes that draw."""
    task = Task(*table_pair("generic", 2, 5), horizon=3)
    found = law_of(lambda draws: session(draws, task, (0, 1), "gumbel", loses_zeros, DrawsAgain))
    assert found == target_law(task, (0, 1))


# Paths


@examples(40)
@given(task=tasks(3, 1, 8), other=tasks(3, 1, 1), prompt=prompts(3), seed=seeds, script=scripts)
def test_one_seed_is_one_text_for_every_drafter_length_and_link(task, other, prompt, seed, script):
    wanted = alone(task, prompt, SeededNoise(seed))
    for draft in (task.draft, other.draft, task.target):
        changed = task._replace(draft=draft)
        for length in (constant(0), constant(3), accepted_ratio(1, 0, 3), confidence(Fraction(1, 2), 3)):
            decoder = edge_cloud_decoder(changed, "gumbel", length, noise=lambda draws: SeededNoise(seed))
            assert generate(decoder, prompt, Unasked()).tokens == wanted
    for network in (in_memory, partial(Unreliable, script)):
        assert session(Unasked(), task, prompt, "gumbel", network, noise=lambda _: SeededNoise(seed)) == wanted


@examples(20)
@given(task=tasks(3, 1, 8), prompt=prompts(3), seed=seeds)
def test_a_perfect_drafter_is_never_corrected(task, prompt, seed):
    decoder = edge_cloud_decoder(
        task._replace(draft=task.target), "gumbel", constant(3), noise=lambda draws: SeededNoise(seed)
    )
    assert all(done.accepted == done.reached for done in generate(decoder, prompt, Unasked()).rounds)


@examples(40)
@given(task=tasks(3, 1, 8), prompt=prompts(3), seed=seeds, forgets=st.sets(st.integers(0, 12)))
def test_a_cloud_without_memory_gives_the_same_text(task, prompt, seed, forgets):
    """It forgets all sessions after the requests named, whose replies are lost."""
    service, sent = Service(task.target, Unasked()), iter(range(100))

    def send(text):
        said = service.respond(text)
        if next(sent) in forgets:
            service.sessions.clear()
            return ()
        return (said,)

    edge = edge_of(task, "gumbel")._replace(seed=seed)
    state = play(edge, Unasked(), EdgeState(prompt, task.horizon), send, patience=30)
    assert state.tokens[len(prompt) :] == alone(task, prompt, SeededNoise(seed))


# What travels


def uploads(task, mode):
    texts = []

    def watched(service):
        return lambda text: (texts.append(text), (service.respond(text),))[1]

    session(Sampled(0), task, (0, 1), mode, watched)
    return texts


def test_the_bytes_up_are_those_of_match_but_for_the_name_and_the_seed():
    certain = Task(always(pmf(0, 1, 0)), always(pmf(0, 1, 0)), horizon=7)
    (opened, *shared), (other, *matched) = uploads(certain, "gumbel"), uploads(certain, "match")
    assert shared == matched
    assert opened == other.replace('"match","seed":null', '"gumbel","seed":5')
    drafts = [decode(text) for text in uploads(GOLDEN._replace(horizon=9), "gumbel")[1:]]
    assert all(isinstance(said, Verify) and not said.masses and not said.rows for said in drafts)


@pytest.mark.parametrize("mode", MODES)
def test_a_seed_is_given_exactly_if_the_mode_needs_one(mode):
    wrong = None if MODES[mode].shared_noise else 5
    wanted = "the seed of the noise both hold" if wrong is None else "none, because its sides share no noise"
    sentence = f"a session in the mode '{mode}' is opened with the seed {wrong}, expected {wanted}"
    edge = edge_of(GOLDEN, mode)._replace(seed=wrong)
    with pytest.raises(ValueError, match=sentence):
        prepared(edge, Unasked(), EdgeState((0,), 2))
    with pytest.raises(ValueError, match=sentence):
        Service(GOLDEN.target, Unasked()).respond(encode(Open("0", 0, 1, (0,), (), mode, wrong)))


def test_a_gate_that_commits_alone_is_refused_shared_noise():
    with pytest.raises(ValueError, match="'gumbel' is opened with the seed None, expected the seed"):
        gated_decoder(GOLDEN, "gumbel", Gate(), 1, 2)


# Two processes


@pytest.mark.parametrize("at", [4, 9])
def test_over_http_a_cloud_killed_without_memory_and_any_drafter_give_the_text_of_the_seed(at):
    """The server has no journal and dies in mid-verification; what it draws by itself differs after each start."""
    task = Task(http_target, horizon=12)
    wanted = alone(task, (0,), SeededNoise(5))
    assert wanted != alone(task, (0,), SeededNoise(6))
    running = Running("", "model", at)
    link = HttpLink(running.address, timeout=20)
    try:
        for i, (draft, gamma) in enumerate(((http_draft, 3), (http_target, 2), (lambda tokens: np.full(3, 1 / 3), 1))):
            text = http_session(link, Unasked(), "gumbel", str(i), horizon=12, gamma=gamma, draft=draft)
            assert text == wanted
        other = http_session(link, Unasked(), "gumbel", "other", horizon=12, gamma=3, seed=6)
    finally:
        link.close()
        running.stop()
    assert running.starts == 2
    assert other == alone(task, (0,), SeededNoise(6))
