"""Planted bugs of noise that edge and cloud share: each is refuted, by the law, the paths or the acceptance."""

from __future__ import annotations

from fractions import Fraction

import pytest

from reference import Task, constant
from reference.algorithms import edge_cloud_gumbel
from reference.edge_cloud import shared_noise
from reference.edge_cloud.decoder import edge_cloud_decoder
from reference.edge_cloud.modes import MODES
from reference.edge_cloud.shared_noise import DrawnNoise, Races, SeededNoise
from reference.types import Verified
from reference.verifiers.gumbel_coupling import agreement_probability, draft_given_target
from reference.verifiers.sample_and_match import sample_and_match
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law
from specverify.laws.tables import table_pair
from test_support.laws.rational import P, Q, always, as_law, distance, law_of, project
from test_support.reference.edge_cloud_sessions import (
    GOLDEN,
    Unasked,
    accepted_law,
    joint_law,
    session,
)


def place_in_round(noise, start):
    """Races that read the noise of the place in the round: it comes again in every round."""
    return Races(noise, 0)


class OneARound(Races):
    """Races that read the noise of the round, whatever the place."""

    def categorical(self, row, site):  # noqa: ARG002
        """Return the winner at the round's first position."""
        return super().categorical(row, (0,))


def session_law(horizon=3):
    """Return the law of a session over one noise for all its rounds."""
    task = Task(always(P), always(Q), horizon=horizon)

    def program(draws):
        noise = DrawnNoise(draws)
        return session(draws, task, (0,), "gumbel", gamma=1, noise=lambda seed: noise)

    return law_of(program), target_law(task, (0,))


@pytest.mark.parametrize("races", [place_in_round, OneARound])
def test_noise_of_the_round_instead_of_the_position_bends_the_law(races, monkeypatch):
    found, wanted = session_law()
    assert found == wanted
    monkeypatch.setattr(shared_noise, "Races", races)
    found, wanted = session_law()
    assert distance(found, wanted) > Fraction(1, 10)


def test_noise_of_round_and_place_keeps_the_law_and_loses_the_invariance(monkeypatch):
    monkeypatch.setattr(shared_noise, "Races", lambda noise, start: Races(noise, 1000 * start))
    found, wanted = session_law()
    assert found == wanted
    task = Task(*table_pair("generic", 3, 5), horizon=8)
    texts = {session(Unasked(), task, (0,), "gumbel", gamma=g, noise=lambda _: SeededNoise(1)) for g in (0, 1, 2)}
    assert len(texts) > 1


def test_noise_that_is_not_shared_is_seen_by_acceptance_alone():
    """Two noises, both good: the law is the target's, and drafts agree as those of sample-and-match do."""

    class Apart:
        def __init__(self, draws):
            self.sides = DrawnNoise(draws), DrawnNoise(draws)

        def winner(self, row, position):
            return self.sides[row is P].winner(row, position)

    law = decoder_law(edge_cloud_decoder(GOLDEN, "gumbel", constant(1), noise=Apart), (0,)).probabilities
    assert law == target_law(GOLDEN, (0,))
    assert accepted_law(P, Q, noise=Apart)[1] == (P * Q).sum() == Fraction(13, 50)
    assert accepted_law(P, Q)[1] == Fraction(18, 35)


def test_a_cloud_that_throws_the_mismatch_away_is_biased(monkeypatch):
    """Drawn again from other noise, a token keeps its agreement and gets p once more: by hand for the known pair."""

    def again(draws, target, prefix, draft):
        verified = sample_and_match(draws, target, prefix, draft)
        if verified.accepted == len(draft.tokens):
            return verified
        kept = verified.tokens[:-1]
        return Verified((*kept, draws.categorical(target(prefix + kept), ("again", 1000))), verified.accepted)

    monkeypatch.setitem(MODES, "gumbel", MODES["gumbel"]._replace(verify=again))
    law = decoder_law(edge_cloud_gumbel.build(GOLDEN, gamma=1), (0,)).probabilities
    both = {v: mass for (v, d), mass in joint_law(P, Q).items() if v == d}
    first = project(law, lambda new: new[0])
    assert first == {v: both[v] + (1 - agreement_probability(P, Q)) * P[v] for v in range(3)}
    assert distance(first, as_law(P)) > Fraction(1, 50)


def test_a_second_race_without_exchanged_roles_bends_the_law(monkeypatch):
    monkeypatch.setattr(shared_noise, "draft_given_target", lambda p, q, token: draft_given_target(q, p, token))
    law = decoder_law(edge_cloud_gumbel.build(GOLDEN, gamma=1), (0,)).probabilities
    assert distance(law, target_law(GOLDEN, (0,))) > Fraction(1, 10)
