"""Programs that are run for many runs at once: what they may end with, and what they may not do."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from reference import Task
from reference.algorithms import speculative_sampling
from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.laws.divided import divided_counts, divided_runs, program_counts
from specverify.laws.draws import NotAFunctionOfItsDraws
from specverify.laws.paths import Undecided
from specverify.run.verify import Checklist, run_check
from specverify.statistics import goodness_of_fit
from specverify.subjects.external import external_subject
from specverify.subjects.subject import SampledSetting
from test_support.laws.rational import P, always, pmf

IMPROBABLE = 1e-9
SAMPLED = check_named("samples_fit_law")
CERTAIN = speculative_sampling.build(Task(always(P), always(P), horizon=2), gamma=1)


def test_a_program_is_divided_path_by_path():
    def program(draws):
        first = draws.categorical(P, ("first",))
        return (first,) if first == 0 else (first, draws.categorical(pmf("1/2", "1/2"), ("second",)))

    runs = list(divided_runs(program, 1000, np.random.default_rng(0)))
    assert [outcome for outcome, _ in runs] == [(0,), (1, 0), (1, 1), (2, 0), (2, 1)]
    assert sum(number for _, number in runs) == 1000
    assert dict(runs) == program_counts(program, 1000, np.random.default_rng(0))


def test_what_nobody_looked_at_is_divided_at_the_end():
    end = Undecided(((("a",), Fraction(1, 4)), (("b",), Fraction(3, 4))))
    counts = program_counts(lambda draws: end, 10_000, 1)
    assert counts.total() == 10_000
    assert goodness_of_fit(counts, {("a",): 0.25, ("b",): 0.75}).p_value > IMPROBABLE


def test_no_run_has_no_counts():
    assert (divided_counts(CERTAIN, (0,), 0, 0), program_counts(lambda draws: 1, 0, 0)) == ({}, {})


def test_a_horizon_of_zero_has_the_empty_text_every_time():
    decoder = speculative_sampling.build(Task(always(P), always(P), horizon=0), gamma=1)
    assert divided_counts(decoder, (0,), 7, 0) == {(): 7}


@pytest.mark.parametrize("row", [pmf(".3", ".7", 0), np.array([0.3, 0.7, 0.0]), np.array([0.1] * 10 + [0.0])])
def test_what_is_impossible_is_never_drawn_however_many_runs_there_are(row):
    """A multinomial gives what rounding left over to its last outcome, which must not be an impossible one."""
    counts = program_counts(lambda draws: draws.categorical(row, ("row",)), 10**18, 0)
    assert counts.total() == 10**18
    assert max(counts) < len(row) - 1


def test_a_program_that_asks_something_else_on_replay_is_refused():
    rows = iter([pmf("1/2", "1/2"), P])
    with pytest.raises(NotAFunctionOfItsDraws, match=r"draw 0 was at \('row',\) with pmf \(1/2, 1/2\)"):
        list(divided_runs(lambda draws: draws.categorical(next(rows), ("row",)), 100, np.random.default_rng(0)))


def test_a_draw_that_is_not_made_again_is_named():
    calls = []

    def program(draws):
        calls.append(None)
        return draws.categorical(P, ("once",)) if len(calls) == 1 else 0

    with pytest.raises(NotAFunctionOfItsDraws, match=r"draw 0 at \('once',\) was not made on replay"):
        list(divided_runs(program, 100, np.random.default_rng(0)))


def test_an_array_that_changes_in_place_is_another_question():
    row = np.array([0.5, 0.5])

    def program(draws):
        outcome = draws.categorical(row, ("row",))
        row[:] = 0.25, 0.75
        return outcome

    with pytest.raises(NotAFunctionOfItsDraws, match=r"pmf \(0.25, 0.75\) .*on replay"):
        list(divided_runs(program, 100, np.random.default_rng(0)))


def test_equal_values_in_another_array_are_the_same_question():
    rows = iter([np.array([0.5, 0.5, 0.0]), np.array([0.5, 0.5, -0.0]), np.array([0.5, 0.5, 0.0])])
    runs = divided_runs(lambda draws: draws.categorical(next(rows), ("row",)), 100, np.random.default_rng(0))
    assert len(list(runs)) == 2


def test_what_is_no_pmf_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match=r"the pmf at \('row',\) sums to 3/4, expected 1"):
        program_counts(lambda draws: draws.categorical(pmf("1/2", "1/4"), ("row",)), 10, 0)


def test_a_program_that_swallows_what_was_wrong_with_a_draw_is_refused_all_the_same():
    rows = iter([P, pmf("1/2", "1/2"), P])

    def program(draws):
        try:
            return draws.categorical(next(rows), ("row",))
        except NotAFunctionOfItsDraws:
            return 0

    with pytest.raises(NotAFunctionOfItsDraws, match="on replay"):
        program_counts(program, 100, 0)


def test_a_round_that_commits_nothing_is_refused():
    stuck = CERTAIN._replace(step=lambda draws, state: (state, None))
    with pytest.raises(ValueError, match=r"a round committed no token after \(0,\)"):
        divided_counts(stuck, (0,), 3, 0)


def wearing_out(task, gamma=1):
    """Build a decoder that is right for two thousand rounds, and then always says token 0."""
    right, rounds = speculative_sampling.build(task, gamma), []

    def step(draws, state):
        rounds.append(None)
        after, done = right.step(draws, state)
        if len(rounds) <= 2000:
            return after, done
        return after._replace(tokens=(*after.tokens[:-1], 0)), done

    return right._replace(step=step)


WORN = speculative_sampling.ALGORITHM._replace(name="worn", build=wearing_out, examples=({"gamma": 1},))


def test_somebody_elses_row_is_sampled_run_by_run_as_well():
    """What is kept from run to run may not show in the few runs of a divided sample."""
    subject = external_subject(f"{__name__}:WORN")
    divided, plain = (subject.with_situations(SampledSetting, (setting,)) for setting in subject.settings)
    assert run_check(plain, SAMPLED, Checklist((SAMPLED,))).status is Status.REFUTED
    coarse = divided.with_situations(SampledSetting, (divided.settings[0]._replace(detect=0.2),))
    assert run_check(coarse, SAMPLED, Checklist((SAMPLED,))).status is Status.HOLDS
