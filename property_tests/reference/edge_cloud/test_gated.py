"""A gate that lets the edge commit its own drafts: what that does to the law, and where it does nothing."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import Task, generate
from reference.algorithms import edge_cloud_gated, edge_cloud_sparse_q
from reference.edge_cloud.gated import is_easy
from reference.lengths.gating import Gate
from specverify.laws.draws import Tape
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law
from specverify.laws.model_strategies import prompts, tasks
from specverify.laws.tables import table_pair
from test_support.laws.rational import P, Q, always, as_law, distance, examples, law_of, pmf, project

ONLY_NLL = {"entropy": None, "margin": None}


@examples(20)
@given(task=tasks(3, 0, 6), prompt=prompts(3), gamma=st.integers(0, 3), seed=st.integers(0, 99))
def test_a_gate_that_always_fires_is_verification_round_by_round(task, prompt, gamma, seed):
    plain = edge_cloud_sparse_q.build(task, gamma=gamma)
    gated = edge_cloud_gated.build(task, gamma=gamma, most=-1)
    state, other = (decoder.init(prompt) for decoder in (plain, gated))
    while state.remaining:
        state, done = plain.step(Tape(seed), state)
        other, again = gated.step(_block_sites(Tape(seed)), other)
        assert (state.tokens, done) == (other.tokens, again)


def _block_sites(draws):
    """Return draws that give the first block's drafts the uniforms of a round without blocks."""

    class Unnumbered:
        def categorical(self, pmf, site):
            return draws.categorical(pmf, site[2:] if site[:2] == ("block", 0) else site)

    return Unnumbered()


@examples(15)
@given(task=tasks(3, 1, 3), prompt=prompts(3), gamma=st.integers(1, 2))
def test_a_gate_that_never_fires_is_the_drafter_up_to_the_last_token(task, prompt, gamma):
    """The horizon keeps a place for the cloud's token, the last one."""
    law = decoder_law(edge_cloud_gated.build(task, gamma=gamma, most=1), prompt).probabilities
    wanted = defaultdict(int)
    for new, mass in target_law(task._replace(target=task.draft, horizon=task.horizon - 1), prompt).items():
        if new and new[-1] in task.eos:
            wanted[new] += mass
        else:
            for token, share in as_law(task.target(prompt + new)).items():
                wanted[*new, token] += mass * share
    assert law == wanted


@examples(15)
@given(
    task=tasks(3, 1, 3),
    prompt=prompts(3),
    gamma=st.integers(0, 2),
    nll=st.sampled_from([0.3, 0.9, 1.5]),
    most=st.sampled_from([0, Fraction(1, 2)]),
)
def test_the_law_is_the_declared_one(task, prompt, gamma, nll, most):
    options = {"gamma": gamma, "nll": nll, "most": most, **ONLY_NLL}
    declared = edge_cloud_gated.declared_law(task, prompt, **options)
    assert decoder_law(edge_cloud_gated.build(task, **options), prompt).probabilities == declared


@pytest.mark.parametrize(
    ("nll", "law", "bias"),
    [
        (0.4, (".2", ".3", ".5"), 0),  # q(d) < .67 is hard: every token
        (0.9, (".6", ".3", ".1"), "2/5"),  # q(d) < .41 is hard: token 0, the overrated one, passes
        (2.0, (".2", ".3", ".5"), None),  # q(d) < .14 is hard: token 2 alone asks, and is never rejected
    ],
)
def test_one_draft_on_the_known_pair(nll, law, bias):
    """With one draft the law is q on easy tokens, min(p, q) on hard ones, the rest by the residual (0, 0, 1)."""
    task = Task(always(P), always(Q), horizon=2)
    options = {"gamma": 1, "nll": nll, "most": 0, **ONLY_NLL}
    first = project(decoder_law(edge_cloud_gated.build(task, **options), (0,)).probabilities, lambda new: new[0])
    hard = [-math.log(mass) > nll for mass in Q]
    kept = [min(p, q) if h else q for p, q, h in zip(P, Q, hard, strict=True)]
    assert first == as_law(pmf(*kept[:2], kept[2] + 1 - sum(kept)))
    if bias is not None:
        assert [first[token] for token in range(3)] == pmf(*law).tolist()
        assert distance(first, as_law(P)) == Fraction(bias)


def test_what_the_edge_commits_has_the_law_of_q_given_the_gate_and_not_that_of_q():
    """Blocks of two, all of it easy or asked about: committed ones are q given that both tokens are the likely one."""
    task = Task(always(P), always(Q), horizon=4)
    assert edge_cloud_gated.build(task, gamma=2).propose is None, "no draft alone is the drafting of its rounds"
    ungated = edge_cloud_sparse_q.build(task, gamma=2)
    draws_law = law_of(lambda draws: ungated.propose(draws, ungated.init((0,))).tokens)
    easy = {block: mass for block, mass in draws_law.items() if is_easy(Gate(nll=0.9), 0, block, (Q, Q))}
    assert easy == {(0, 0): Fraction(9, 25)}
    assert set(draws_law) - set(easy)


def test_a_round_tells_the_tokens_that_were_committed_before_the_cloud_was_asked():
    task = Task(always(P), always(pmf(1, 0, 0)), horizon=5)
    (done,) = generate(edge_cloud_gated.build(task, gamma=2, nll=0.5, most=0, **ONLY_NLL), (1,), Tape(3)).rounds
    assert done.tokens[:4] == done.draft == (0, 0, 0, 0)
    assert (done.accepted, done.reached, len(done.tokens)) == (4, 4, 5)


def test_an_end_of_text_within_a_committed_block_ends_the_decode():
    task = Task(always(P), always(pmf(0, 1, 0)), eos=(1,), horizon=6)
    generation = generate(edge_cloud_gated.build(task, gamma=3, nll=0.5, most=0, **ONLY_NLL), (0,), Tape(3))
    assert generation.tokens == (1,)
    assert len(generation.rounds) == 1


def test_the_cloud_is_told_of_what_was_committed_without_it():
    """A cloud that missed a block would answer from a shorter text: with full-context rows the law would show it."""
    task = Task(*table_pair("generic", 3, 5), horizon=5)
    options = {"gamma": 1, "nll": 0.9, "most": 0, **ONLY_NLL}
    decoder = edge_cloud_gated.build(task, **options)
    generations = [generate(decoder, (0,), Tape(seed)) for seed in range(20)]
    shares = {round_.reached > 1 for generation in generations for round_ in generation.rounds}
    assert shares == {False, True}
    assert decoder_law(decoder, (0,)).probabilities == edge_cloud_gated.declared_law(task, (0,), **options)


def test_an_empty_block_is_never_easy():
    assert not is_easy(Gate(), 1, (), ())
    assert is_easy(Gate(), 0, (0,), (Q,))
