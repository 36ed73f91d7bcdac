"""Rounds for the statistics of other projects: how they are drawn, and when those that are left cannot matter."""

from __future__ import annotations

import numpy as np
import pytest

from reference import Decoder, Round, State, Task, softmax
from specverify.checks import Conditions
from specverify.run.catalogue import find_subject
from specverify.trust import kills, peer_rounds, peers
from specverify.trust.peer_rounds import CANNOT_BE_DRAWN, LOOKS, PeerRounds, rounds_of
from specverify.trust.peers import FIRST, PEERS

P, Q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6])
MANY = 10**9
STATISTICS = {peer.name: peer for peer in PEERS}


def decoder_of(name):
    return find_subject(name).variants[0].build(Task(lambda _: P, lambda _: Q, horizon=2))


def ways(name):
    return list(rounds_of(decoder_of(name), np.random.default_rng(0)))


def shares(blocks):
    counts = np.bincount([block[0] for block in blocks], [*blocks.values()], len(P))
    return counts / counts.sum()


def test_rounds_of_a_function_of_its_draws_are_counted_together():
    together, *_ = ways("reference:speculative-sampling")
    blocks = together.draw(MANY)
    assert sum(blocks.values()) == MANY
    assert shares(blocks) == pytest.approx(P, abs=1e-4)
    assert together.independent


def test_hidden_random_numbers_are_answered_as_draws():
    answered, _ = ways("mutant:hidden-randomness")
    blocks = answered.draw(MANY)
    assert sum(blocks.values()) == MANY
    assert shares(blocks) == pytest.approx(P, abs=1e-4)
    assert answered.independent


@pytest.mark.thorough
def test_draws_by_name_are_not_taken_for_hidden_random_numbers():
    """Whoever answers them draws from generators of his own, inside the same block."""
    several = STATISTICS["vLLM V2 wide"]._replace(vocabulary=150, samples=15_000)
    assert peers.judged(several, find_subject("mutant:hidden-randomness"))


def test_what_depends_on_a_count_of_calls_is_run_round_by_round():
    (one_by_one,) = ways("mutant:counted-calls")
    assert sum(one_by_one.draw(300).values()) == 300
    assert not one_by_one.independent
    assert peers.judged(STATISTICS["transformers"], find_subject("mutant:counted-calls"))


def test_rounds_end_when_the_rest_cannot_matter_and_that_is_not_asked_often():
    asked = []

    def settled(found):
        asked.append(sum(found.values()))
        return len(asked) == 3

    together, *_ = ways("reference:speculative-sampling")
    assert sum(together.draw(MANY, settled).values()) == asked[2] < MANY
    asked.clear()
    one_by_one = ways("reference:speculative-sampling")[-1]
    assert sum(one_by_one.draw(1000, asked.append).values()) == 1000  # None: not settled
    assert len(asked) == LOOKS


def test_another_way_is_taken_where_a_round_is_seen_late_to_be_no_function_of_its_draws(monkeypatch):
    """Dividing one draft into few paths may not tell, nor may a replay: here neither is asked before."""
    monkeypatch.setattr(peer_rounds, "REPEATED", 0)
    as_it_is, answered, one_by_one = ways("mutant:counted-calls")
    assert (as_it_is.independent, answered.independent, one_by_one.independent) == (True, True, False)
    tried = []

    def accepts(rounds, *_):
        tried.append(rounds.independent)
        if rounds.independent:
            raise CANNOT_BE_DRAWN[0]
        return True

    statistic = STATISTICS["transformers"]._replace(accepts=accepts)
    assert peers.judged(statistic, find_subject("mutant:counted-calls"))
    assert tried == [True, True, False]


@pytest.mark.thorough(keep=5)
@pytest.mark.parametrize("state", range(20))
def test_a_coin_of_one_in_four_that_is_hidden_is_noticed(state):
    hidden = np.random.default_rng(state)
    coin = Decoder(
        lambda prompt: State(prompt, 2),
        lambda draws, state: (state, Round((int(hidden.random() < 0.25),), (), 0, 0)),
    )
    assert len(list(rounds_of(coin, np.random.default_rng(0)))) == 2
    assert len(list(rounds_of(coin, np.random.default_rng(0), intercepted=True))) == 1


def test_a_round_that_takes_long_is_not_repeated(monkeypatch):
    monkeypatch.setattr(peer_rounds, "PROBE_SECONDS", -1)
    with pytest.raises(TimeoutError, match="one round takes 0 s"):
        ways("reference:speculative-sampling")


def test_a_round_that_emits_nothing_is_an_error():
    nothing = Decoder(lambda prompt: State(prompt, 2), lambda draws, state: (state, Round((), (), 0, 0)))
    with pytest.raises(ValueError, match="a round emitted no token"):
        next(rounds_of(nothing, np.random.default_rng(0))).draw(5)


def test_a_sample_that_would_take_too_long_is_given_up(monkeypatch):
    together, *_ = ways("reference:speculative-sampling")
    monkeypatch.setattr(peer_rounds, "PROBE_SECONDS", -1)
    together.draw(10)
    monkeypatch.setattr(peer_rounds, "MOST_SECONDS", -1)
    with pytest.raises(TimeoutError, match="10 rounds would take 0 s"):
        together.draw(10)


# Chi-square


def in_parts(counts, order, told):
    """Return rounds whose counts grow token by token in this order; ``told`` gets what is settled on the way."""

    def draw(number, settled):
        for end in range(1, len(order)):
            told.append(settled({(int(token),): int(counts[token]) for token in order[:end]}))
        return {(token,): int(count) for token, count in enumerate(counts) if count}

    return PeerRounds(draw, independent=True)


def test_chi_square_is_never_settled_where_the_whole_sample_is_accepted():
    accepts, rng = STATISTICS["vLLM V2 wide"].accepts, np.random.default_rng(0)
    seen = set()
    for moved in np.linspace(0, 0.6, 60):
        p = softmax(rng.standard_normal(60) * 2)
        law = (1 - moved) * p + moved * softmax(rng.standard_normal(60))
        settled = []
        counts = rng.multinomial(1000, law)
        accepted = accepts(in_parts(counts, rng.permutation(60), settled), p, 1000, rng)
        seen.add((accepted, any(settled)))
    assert (True, True) not in seen
    assert seen >= {(True, False), (False, True)}


def test_chi_square_ends_when_it_is_settled():
    p, drawn = np.full(100, 0.01), []

    def draw(number, settled):
        drawn.append(settled({(0,): number // 2}))
        return {(0,): number // 2}

    assert not STATISTICS["vLLM V2 wide"].accepts(PeerRounds(draw, True), p, 40_960, np.random.default_rng(0))
    assert drawn == [True]


# Cosine

WIDE = softmax(np.random.default_rng(0).standard_normal(111))
TILTED = softmax(np.random.default_rng(1).standard_normal(111))


def with_cosine(wanted):
    """Return a law whose cosine with WIDE is as wanted."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        law = (1 - middle) * WIDE + middle * TILTED
        cosine = law @ WIDE / np.linalg.norm(law) / np.linalg.norm(WIDE)
        low, high = (middle, high) if cosine > wanted else (low, middle)
    return law


@pytest.mark.parametrize(
    ("cosine", "independent", "goes"),
    [(0.9995, True, 1), (0.95, True, 1), (0.9902, True, 2), (0.9898, True, 2), (0.9995, False, 1)],
)
def test_most_of_five_million_rounds_are_drawn_only_if_they_may_matter(cosine, independent, goes):
    drawn, rng, flashinfer = [], np.random.default_rng(2), STATISTICS["FlashInfer"]
    law = with_cosine(cosine)

    def draw(number, settled=None):
        drawn.append(number)
        return {(token,): int(count) for token, count in enumerate(rng.multinomial(number, law))}

    assert flashinfer.accepts(PeerRounds(draw, independent), WIDE, flashinfer.samples, rng) == (cosine > 0.99)
    assert len(drawn) == goes
    assert sum(drawn) == (flashinfer.samples if goes == 2 or not independent else flashinfer.samples // FIRST)


def test_a_token_of_probability_0_is_waited_for():
    """It may come among the last: what was drawn first lets nobody accept."""
    p, drawn = np.array([0.5, 0.5, 0.0]), []

    def draw(number, settled=None):
        drawn.append(number)
        late = int(len(drawn) == 2)
        return {(0,): number // 2, (1,): number - number // 2 - late, (2,): late}

    assert not STATISTICS["FlashInfer"].accepts(PeerRounds(draw, True), p, 5_000_000, np.random.default_rng(0))
    assert sum(drawn) == 5_000_000


@pytest.mark.parametrize("chance", [0.3, 0.03])
def test_shares_are_seldom_farther_from_their_law_than_is_said(chance):
    samples = np.random.default_rng(3).multinomial(50, np.full(500, 2e-3), 2000) / 50
    off = np.linalg.norm(samples - 2e-3, axis=1)
    assert np.mean(off > peers._off(50, chance)) <= chance
    assert np.mean(off > peers._off(50, 1.0) * 0.9) > 0.5


# In the matrix


def test_a_subject_without_a_bug_is_judged_once_for_all_that_are_planted_in_it(monkeypatch):
    names = ("inverted-ratio", "residual-exchanged")
    monkeypatch.setattr(kills, "PEERS", [STATISTICS["transformers"]])
    monkeypatch.setattr(kills, "_ACCEPTED", {})
    judged = []
    monkeypatch.setattr(
        kills, "judged", lambda peer, subject: judged.append(subject.name) or peers.judged(peer, subject)
    )
    rows = [kills.mutant_row(name, (), Conditions(), peers=True) for name in names]
    assert [dict(row.peers) for row in rows] == [{"transformers": kills.KILLED}] * 2
    assert len(judged) == 3
