"""The law of one call: coins followed, the last token a vector, and what becomes of a token that is looked at."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.laws.call_paths import MOST_PATHS, Ending
from specverify.laws.law_of_call import FailedOutcome, call_law, edges

SIZE = 1000
PMF = np.random.default_rng(0).exponential(size=SIZE)
PMF /= PMF.sum()
OTHER = PMF[::-1].copy()
COIN = np.array([0.25, 0.75])


class UnanswerableError(Exception):
    """Says nothing of the program."""


def kept_or_not(finish):
    """Return a call with one draft: kept, it is followed by what ``finish`` makes of PMF, else of OTHER."""

    def program(draws):
        if draws.categorical(COIN, ("accept",)) == 0:
            return finish(draws, (5,), PMF)
        return finish(draws, (), OTHER)

    return program


def never_looked_at(draws, kept, pmf):
    return Ending(kept, np.arange(SIZE), pmf)


def looked_at(draws, kept, pmf):
    return Ending((*kept, draws.categorical(pmf, ("token",))))


@pytest.mark.parametrize("finish", [never_looked_at, looked_at])
def test_the_law_is_that_of_the_coins_times_a_vector(finish):
    law = call_law(kept_or_not(finish), SIZE)
    assert set(law.behind) == {(), (5,)}
    assert np.allclose(law.behind[5,].masses, 0.25 * PMF)
    assert np.allclose(law.behind[()].masses, 0.75 * OTHER)
    assert (law.behind[()].weight, law.behind[5,].weight) == (0.75, 0.25)
    assert not law.faults
    assert law.missing == 0


def test_of_few_tokens_every_one_is_followed():
    few = np.where(np.arange(SIZE) < 100, PMF, 0.0)
    law = call_law(lambda draws: looked_at(draws, (), few / few.sum()), SIZE)
    assert law.runs == 1 + 3 + 100
    assert law.sampled == 0


def test_a_token_worked_out_of_a_number_is_known_where_all_are_followed():
    """Drawn among the likely ones, and looked up."""
    tokens = np.argsort(-PMF)[:100]
    few = PMF[tokens] / PMF[tokens].sum()
    found = call_law(lambda draws: Ending((int(tokens[draws.categorical(few, ("rank",))]),)), SIZE).behind[()]
    assert not found.unread
    assert np.allclose(found.masses[tokens], few)


def test_a_token_worked_out_of_a_number_is_known_in_part_where_they_are_too_many():
    """Never more is said of a token than was followed: a right program that sorts first is not accused."""
    order = np.argsort(-PMF)
    law = call_law(lambda draws: Ending((int(order[draws.categorical(PMF[order], ("rank",))]),)), SIZE)
    found = law.behind[()]
    assert "is known for" in found.unread
    assert 0 < np.count_nonzero(found.masses) < 200
    assert (found.masses <= PMF + 1e-15).all()


@pytest.mark.parametrize("first", [1, 300, 512])
def test_a_token_of_a_block_is_known_if_all_followed_ones_are_the_outcome_plus_its_first(first):
    block = PMF[first:] / PMF[first:].sum()
    found = call_law(lambda draws: Ending((first + draws.categorical(block, ("place",)),)), SIZE).behind[()]
    assert not found.unread
    assert np.allclose(found.masses[first:], block)
    assert not found.masses[:first].any()


@pytest.mark.parametrize("dropped", [0, 1, 500, SIZE - 2])
def test_a_token_is_not_known_if_some_are_the_outcome_plus_another_number(dropped):
    """Entries with p = 0 are left out before the draw: later outcomes are one less than their tokens."""
    kept = np.delete(np.arange(SIZE), dropped)
    masses = PMF[kept] / PMF[kept].sum()
    found = call_law(lambda draws: Ending((int(kept[draws.categorical(masses, ("place",))]),)), SIZE).behind[()]
    assert bool(found.unread) is (dropped > 0)
    assert (found.masses <= np.bincount(kept, masses, SIZE) + 1e-15).all()


def test_a_token_at_an_edge_of_a_block_is_followed():
    """Block 256 to 999: token 512 comes out as 0, as if the last 9 bits were kept."""

    def program(draws):
        token = 256 + draws.categorical(PMF[256:] / PMF[256:].sum(), ("place",))
        return Ending((0 if token == 512 else token,))

    found = call_law(program, SIZE).behind[()]
    assert found.unread
    assert found.masses[0] == pytest.approx(PMF[512] / PMF[256:].sum())


def test_a_later_draw_in_which_a_followed_outcome_is_impossible_is_no_fault_of_the_program():
    """The second draw is among the half of the vocabulary that the first selects."""
    halves = np.where(np.arange(SIZE) < 500, PMF, 0.0), np.where(np.arange(SIZE) < 500, 0.0, PMF)

    def program(draws):
        half = halves[draws.categorical(PMF, ("half",)) % 2]
        places = np.flatnonzero(half).tolist()
        return Ending((places.index(draws.categorical(half / half.sum(), ("token",))),))

    law = call_law(program, SIZE)
    assert not law.faults
    assert law.behind[()].unread


def test_what_is_no_token_is_told_apart():
    law = call_law(lambda draws: Ending((), np.arange(SIZE) - 1.5, PMF), SIZE)
    assert law.behind[()].masses.sum() == 0
    assert law.behind[()].outside[-1.5] == PMF[0]
    assert len(law.behind[()].outside) == SIZE


def raising(error):
    def finish(draws, kept, pmf):
        token = draws.categorical(pmf, ("token",))
        if token >= 512:
            raise error
        return Ending((*kept, token))

    return finish


def test_an_error_for_some_tokens_is_a_fault_and_names_one():
    law = call_law(kept_or_not(raising(OverflowError("too  large"))), SIZE)
    assert law.faults
    assert all(isinstance(fault, FailedOutcome) and fault.token >= 512 for fault in law.faults)
    assert law.faults[0].said == "it raises OverflowError: too large"


def test_an_error_that_says_nothing_of_the_program_is_raised():
    with pytest.raises(UnanswerableError):
        call_law(kept_or_not(raising(UnanswerableError())), SIZE, said=(UnanswerableError,))


def test_notable_tokens_are_followed():
    def finish(draws, kept, pmf):
        token = draws.categorical(pmf, ("token",))
        return Ending((*kept, 0 if token == 333 else token))

    assert not call_law(kept_or_not(finish), SIZE).behind[()].unread
    assert call_law(kept_or_not(finish), SIZE, notable=(333,)).behind[()].unread


def test_paths_beyond_the_most_are_missing():
    def program(draws):
        for i in range(13):
            draws.categorical(COIN, ("coin", i))
        return Ending((1,))

    law = call_law(program, SIZE)
    assert law.runs == MOST_PATHS
    assert 0 < law.missing < 1


def test_an_error_on_the_way_is_raised_and_one_of_a_draw_even_if_it_is_swallowed():
    with pytest.raises(ZeroDivisionError):
        call_law(lambda draws: 1 / 0, SIZE)

    def swallows(draws):
        try:
            draws.categorical(np.array([0.5, 0.6]), ("coin",))
        except ValueError:
            return Ending((1,))

    with pytest.raises(ValueError, match="sums to"):
        call_law(swallows, SIZE)


def test_edges_are_where_numbers_are_cut():
    found = set(edges(151_936))
    assert {0, 1, 255, 256, 8191, 8192, 8193, 32767, 32768, 65535, 65536, 131072, 147456, 151934, 151935} <= found
    assert all(0 <= token < 151_936 for token in found)
    assert set(edges(10)) == set(range(10)) & set(edges(10))


def in_two_stages(draws):
    """Draw a block of 8 tokens, then a token of the block: the law is PMF."""
    rows = PMF.reshape(-1, 8)
    block = draws.categorical(rows.sum(1), ("block",))
    return Ending((8 * block + draws.categorical(rows[block] / rows[block].sum(), ("place",)),))


def zero_if_two_draws_agree(draws):
    """Emit a token of law PMF, but token 0 if a second draw agrees with it."""
    first, second = draws.categorical(PMF, ("first",)), draws.categorical(PMF, ("second",))
    return Ending((0 if first == second else first,))


@pytest.mark.parametrize("program", [in_two_stages, zero_if_two_draws_agree])
def test_outcomes_that_lead_elsewhere_are_missing(program):
    law = call_law(program, SIZE)
    found = law.behind[()]
    assert found.unread
    assert law.missing > 0.5
    assert found.weight + law.missing == pytest.approx(1)
    assert (found.masses <= PMF + 1e-12).all()


@pytest.mark.parametrize("emitted", [float("nan"), float("inf"), 2.5])
def test_a_token_that_is_no_whole_number_is_followed_without_an_error(emitted):
    law = call_law(lambda draws: Ending((emitted if draws.categorical(PMF, ("token",)) > 500 else 7,)), SIZE)
    assert law.behind[()].unread
