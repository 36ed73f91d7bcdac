"""The paths of one call: draws without effect, hidden state, and tokens that are cut off."""

from __future__ import annotations

import numpy as np
import pytest

from property_tests.laws.test_law_of_call import OTHER, PMF, kept_or_not, looked_at, never_looked_at
from specverify.laws.call_paths import Ending, call_paths
from specverify.laws.draws import NotAFunctionOfItsDraws
from specverify.laws.law_of_call import call_law

SIZE = 1000

COIN = np.array([0.25, 0.75])


def test_a_token_that_nobody_looks_at_takes_one_run_a_path_and_another_some_tens():
    assert call_law(kept_or_not(never_looked_at), SIZE).runs == 2
    law = call_law(kept_or_not(looked_at), SIZE)
    assert 40 < law.runs < 100
    assert law.looked_at == 2
    assert law.sampled == 12


def test_a_token_that_is_cut_off_is_found_and_gives_another_one_too_much():
    def cut(draws, kept, pmf):
        return Ending((*kept, draws.categorical(pmf, ("token",)) % 512))

    found = call_law(kept_or_not(cut), SIZE).behind[()]
    assert found.unread
    over = found.masses > 0.75 * OTHER + 1e-12
    assert over.any()
    assert np.allclose(found.masses[over], 0.75 * (OTHER[over] + OTHER[np.flatnonzero(over) + 512]))


def test_a_token_after_which_nothing_comes_is_a_fault():
    def finish(draws, kept, pmf):
        token = draws.categorical(pmf, ("token",))
        return Ending((*kept, 7) if token >= 512 and not kept else (*kept, 7, token))

    assert any(fault.said == "it emits no token for it" for fault in call_law(kept_or_not(finish), SIZE).faults)


def test_a_program_that_goes_on_in_another_way_is_not_read():
    def finish(draws, kept, pmf):
        token = draws.categorical(pmf, ("token",))
        if token >= 512:
            token = draws.categorical(OTHER, ("once more",))
        return Ending((*kept, token))

    assert "continues differently" in call_law(kept_or_not(finish), SIZE).behind[()].unread


def test_a_last_token_that_two_draws_decide_is_not_read():
    def program(draws):
        return Ending((max(draws.categorical(PMF, ("one",)), draws.categorical(OTHER, ("two",))),))

    assert "several draws" in call_law(program, SIZE).behind[()].unread


def test_a_draw_that_has_no_part_in_the_answer_changes_nothing():
    """As code does that draws a replacement for every position, and keeps one."""

    def program(draws):
        first, second = (draws.categorical(pmf, ("replacement", i)) for i, pmf in enumerate((PMF, OTHER)))
        return Ending((5, second)) if draws.categorical(COIN, ("accept",)) == 0 else Ending((first,))

    law = call_law(program, SIZE)
    assert np.allclose(law.behind[()].masses, 0.75 * PMF)
    assert np.allclose(law.behind[5,].masses, 0.25 * OTHER)


def test_a_program_that_is_no_function_of_its_draws_is_named():
    calls = []

    def program(draws):
        calls.append(1)
        draws.categorical(np.array([0.5, 0.5]) if len(calls) < 2 else COIN, ("coin",))
        return Ending((1,))

    with pytest.raises(NotAFunctionOfItsDraws, match="on replay"):
        list(call_paths(program))
