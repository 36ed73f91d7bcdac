"""Loops without an end: what follows after many turns is no part of a law that floats can show, and is not followed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from reference import Decoder, Round, State
from specverify.laws.draws import MOST_DECISIONS, NotAFunctionOfItsDraws
from specverify.laws.enumeration import decoder_law, program_law
from specverify.laws.paths import PROBES, RARE, estimated_paths, paths
from specverify.laws.rounding import FLOAT64


def turns(chance, draws):
    """Return how often a coin came up before it did not."""
    number = 0
    while draws.categorical(np.array([1 - chance, chance]), ("coin",)):
        number += 1
    return number


@pytest.mark.parametrize("chance", [0.5, 0.1, 0.9])
def test_the_law_of_a_loop_is_geometric_and_short_by_less_than_it_rounds(chance):
    law = program_law(lambda draws: turns(chance, draws) % 3)
    for rest in range(3):
        assert law.probabilities[rest] == pytest.approx((1 - chance) * chance**rest / (1 - chance**3), abs=1e-14)
    assert law.missing == 0
    assert 1 - sum(law.probabilities.values()) < FLOAT64 * law.runs


def test_a_loop_over_many_outcomes_ends_after_few_of_its_endless_paths():
    """Of 20,000 runs about 20,000 draws are made, not 40 for each of them."""
    asked = []

    def accepted(draws):
        while True:
            asked.append(1)
            token = draws.categorical(np.full(3, 1 / 3), ("token",))
            if draws.categorical(np.array([0.5, 0.5]), ("coin",)):
                return token

    law = program_law(accepted, 20_000)
    assert law.missing > 0.1
    assert len(asked) < 30_000


def test_what_is_not_followed_is_counted_and_no_more_than_that_is_lost():
    lost = []
    followed = sum(
        path.weight for path in paths(lambda draws: turns(0.5, draws), rare=lambda mass, draws: not lost.append(mass))
    )
    assert 0 < sum(lost) <= RARE
    assert followed + sum(lost) == 1


@pytest.mark.parametrize("weights", [(1e-300, 0.5, 0.5), (0.5, 1e-300, 0.5), (0.5, 0.5, 1e-300)])
def test_an_outcome_that_is_too_rare_is_not_run_and_is_told(weights):
    lost, seen = [], []

    def program(draws):
        seen.append(draws.categorical(np.array(weights), ("first",)))
        return seen[-1], draws.categorical(np.array([0.25, 0.75]), ("second",))

    followed = list(paths(program, rare=lambda mass, draws: not lost.append(mass)))
    assert lost == [1e-300]
    assert [path.outcome[0] for path in followed] == seen
    assert {path.outcome[0]: path.weight for path in followed[1::2]} == {
        place: 0.375 for place, weight in enumerate(weights) if weight == 0.5
    }


def test_who_is_told_of_a_rare_outcome_may_end_the_enumeration():
    first_is_rare = np.array([1e-300, 0.5, 0.5])
    assert [
        path.outcome
        for path in paths(lambda draws: draws.categorical(first_is_rare, ("a",)), rare=lambda mass, draws: True)
    ] == [1, 2]
    assert not list(paths(lambda draws: draws.categorical(first_is_rare, ("a",)), rare=lambda mass, draws: False))


def test_many_rare_outcomes_at_once_are_said_to_be_missing():
    def program(draws):
        if draws.categorical(np.array([1 - 1e-13, 1e-13]), ("coin",)) == 0:
            return 0
        return 1 + sum(draws.categorical(np.full(1000, 1e-3), ("wide",)) for _ in range(2))

    law = program_law(program)
    assert law.missing == pytest.approx(1e-13, rel=1e-6, abs=0)
    assert law.probabilities == {0: pytest.approx(1)}


def test_rationals_are_followed_to_the_end():
    tiny = np.array([1 - Fraction(1, 10**20), Fraction(1, 10**20)])
    law = program_law(lambda draws: draws.categorical(tiny, ("coin",)) and draws.categorical(tiny, ("next",)))
    assert law.probabilities == {0: 1 - Fraction(1, 10**40), 1: Fraction(1, 10**40)}


def test_a_program_that_goes_on_when_it_is_stopped_is_stopped_again():
    asked = []

    def program(draws):
        asked.append(0)
        for _ in range(3):
            try:
                return turns(0.5, draws)
            except BaseException:  # noqa: BLE001 - as a worker does that must not die
                asked[-1] += 1
        return -1

    law = program_law(program)
    assert -1 not in law.probabilities
    assert max(asked) == 3


def endless(draws):
    while True:
        draws.categorical(np.full(1000, 1e-3), ("wide",))


def test_a_program_that_never_ends_is_stopped():
    with pytest.raises(NotAFunctionOfItsDraws, match=f"more than {MOST_DECISIONS} paths have no end in sight"):
        next(paths(endless))
    assert program_law(endless, budget=50)[:2] == ({}, 1)


def test_a_program_of_more_coins_than_floats_can_show_is_out_of_reach_and_at_no_fault():
    fair = np.full(2, 0.5)
    law = program_law(lambda draws: sum(draws.categorical(fair, ("coin", place)) for place in range(80)), budget=300)
    assert law.missing == pytest.approx(1)


def in_rounds(token, rounds=2):
    """Return the decoder that writes ``token(draws)`` in every round."""

    def step(draws, state):
        written = (token(draws),)
        return State(state.tokens + written, state.remaining - 1), Round(written, (), 0, 0)

    return Decoder(lambda prompt: State(prompt, rounds), step)


def test_a_decoder_whose_rounds_have_no_end_has_a_law_round_by_round():
    law = decoder_law(in_rounds(lambda draws: turns(0.5, draws) % 2), (0,))
    assert law.missing == 0
    assert law.probabilities == pytest.approx({(0, 0): 4 / 9, (0, 1): 2 / 9, (1, 0): 2 / 9, (1, 1): 1 / 9}, abs=1e-14)


def test_what_a_decoder_does_rarely_in_many_ways_is_said_to_be_missing_from_every_round():
    """The second round begins after one certain token: 1e-13 is missing from each."""

    def token(draws):
        if draws.categorical(np.array([1 - 1e-13, 1e-13]), ("coin",)) == 0:
            return 0
        return 1 + sum(draws.categorical(np.full(1000, 1e-3), ("wide",)) for _ in range(2))

    law = decoder_law(in_rounds(token), (0,))
    assert law.missing == pytest.approx(2e-13, rel=1e-6, abs=0)
    assert law.probabilities == {(0, 0): pytest.approx(1)}


@pytest.mark.parametrize("budget", [50, 400])
def test_rare_paths_of_a_decoder_count_as_runs(budget):
    """All of the first round is missing where no end of it was found, whatever the budget."""
    asked = []

    def token(draws):
        asked.append(1)
        return endless(draws)

    law = decoder_law(in_rounds(token), (0,), budget)
    assert law[:2] == ({}, 1)
    assert len(asked) <= budget + PROBES


def test_a_round_that_is_cut_among_its_rare_paths_is_missing_but_for_what_was_followed():
    def token(draws):
        return draws.categorical(np.array([0.75, 0.25]), ("coin",)) and endless(draws)

    law = decoder_law(in_rounds(token, rounds=1), (0,), 50)
    assert law[:2] == ({(0,): 0.75}, 0.25)


@pytest.mark.parametrize("order", [1, -1], ids=["rare ones first", "rare ones last"])
def test_rare_and_other_paths_of_a_round_come_out_of_one_budget(order):
    masses, asked = np.array([*[1e-16] * 10, *[1 / 15] * 15])[::order], []

    def token(draws):
        asked.append(1)
        outcome = draws.categorical(masses, ("which",))
        return draws.categorical(np.full(2, 0.5), ("more",)) if masses[outcome] < RARE else outcome

    law = decoder_law(in_rounds(token, rounds=1), (0,), 20)
    assert len(asked) <= 21  # one more tells whether anything is left
    assert law.runs == 15  # those of one draw that are not run count as one


def test_the_only_path_is_taken_once_for_the_estimate():
    runs = []

    def program(draws):
        runs.append(draws.categorical(np.array([0.0, 1.0, 0.0]), ("certain",)))

    assert estimated_paths(program) == 1
    assert runs == [1]
