"""Exact laws by enumeration, and what happens when a program is not what it should be."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import ALGORITHMS, Decoder, Round, State, Task
from reference.algorithms import nasd_seed_rule, speculative_sampling
from specverify.laws.draws import MOST_DECISIONS, Decision, NotAFunctionOfItsDraws, Replayed
from specverify.laws.enumeration import (
    EnumerationTooLarge,
    decoder_law,
    heaviest_decodes,
    one_round_law,
    program_law,
    whole_run,
)
from specverify.laws.law import Law, combined_law, is_rational, rounding_bound, target_law, total_variation
from specverify.laws.model_strategies import pmfs, prompts, tasks
from specverify.laws.paths import PROBES, estimated_paths, first_outcomes, has_more_paths, heaviest_paths, paths
from specverify.laws.rounding import FLOAT64
from specverify.laws.tables import as_float64, table_pair
from test_support.laws.rational import P, Q, as_law, examples, law_of, pmf, project

HALF = pmf("1/2", "1/2")


def two_draws(draws):
    """A second draw only after outcomes 1 and 2 of the first."""
    first = draws.categorical(P, ("first",))
    return (first,) if first == 0 else (first, draws.categorical(HALF, ("second", first)))


# Paths


def test_paths_come_once_each_with_their_weights_choices_and_decisions():
    found = list(paths(two_draws))
    assert [(path.outcome, path.choices) for path in found] == [
        ((0,), (0,)),
        ((1, 0), (1, 0)),
        ((1, 1), (1, 1)),
        ((2, 0), (2, 0)),
        ((2, 1), (2, 1)),
    ]
    assert [path.weight for path in found] == [P[0], P[1] / 2, P[1] / 2, P[2] / 2, P[2] / 2]
    assert found[1].decisions == (
        Decision(("first",), tuple(P), 1),
        Decision(("second", 1), tuple(HALF), 0),
    )


def test_outcomes_of_probability_zero_open_no_path():
    assert law_of(lambda draws: draws.categorical(pmf(0, 1, 0), ())) == {1: 1}


def test_a_program_without_draws_has_one_path():
    assert [path[:3] for path in paths(lambda draws: "answer")] == [("answer", 1, ())]


@given(st.lists(st.integers(1, 3).flatmap(pmfs), min_size=1, max_size=5), st.integers(1, 4))
def test_the_heaviest_paths_are_those_of_all_paths_and_the_others_are_not_run(rows, number):
    runs = []

    def program(draws):
        runs.append(tuple(draws.categorical(row, (i,)) for i, row in enumerate(rows)))
        return sum(runs[-1]) % 2

    everything = [(path.weight / (1 + path.outcome), path) for path in paths(program)]
    expected = sorted(everything, key=lambda item: -item[0])[:number]
    runs.clear()
    assert heaviest_paths(program, lambda odd: Fraction(1, 1 + odd), number, most=1000) == expected
    assert len(runs) <= len(everything)


def test_paths_that_weigh_less_than_what_was_found_are_not_run():
    likely, runs = pmf("9/10", "1/10"), []

    def program(draws):
        runs.append(tuple(draws.categorical(likely, (i,)) for i in range(10)))
        return runs[-1]

    [(weight, path)] = heaviest_paths(program, lambda _: 1, 1, most=1024)
    assert (weight, path.choices) == (Fraction(9, 10) ** 10, (0,) * 10)
    assert len(runs) == 1


@given(st.lists(st.integers(1, 3).flatmap(pmfs), max_size=4))
def test_the_law_of_independent_draws_is_the_product_of_their_pmfs(rows):
    law = law_of(lambda draws: tuple(draws.categorical(row, (i,)) for i, row in enumerate(rows)))
    assert sum(law.values()) == 1
    for outcome, mass in law.items():
        product = Fraction(1)
        for row, token in zip(rows, outcome, strict=True):
            product *= row[token]
        assert mass == product


def test_equal_outcomes_of_different_paths_add_up():
    assert law_of(lambda draws: len(two_draws(draws))) == {1: P[0], 2: 1 - P[0]}


# Merged laws


@pytest.mark.thorough(keep=9)
@pytest.mark.parametrize("row", ALGORITHMS, ids=lambda row: row.name)
@examples(6)
@given(task=tasks(2, 2, 3), prompt=prompts(2), data=st.data())
def test_merged_and_unmerged_laws_are_equal(row, task, prompt, data):
    decoder = row.build(task, **data.draw(st.sampled_from(row.examples)))
    assert decoder_law(decoder, prompt).probabilities == law_of(whole_run(decoder, prompt))


def test_merging_saves_runs_and_reports_what_was_gone_through():
    target, draft = table_pair("generic", 2, 0)
    decoder = speculative_sampling.build(Task(target, draft, horizon=5), gamma=2)
    law = decoder_law(decoder, (0,))
    assert law.runs < program_law(whole_run(decoder, (0,))).runs
    assert (law.missing, law.coverage.rounds, law.coverage.rounds_of_two) == (0, 5, 3)
    assert law.coverage.outcomes == {(2, 0), (2, 1), (2, 2), (1, 0), (1, 1), (0, 0)}


@pytest.mark.parametrize("begin", [(0, 1, 0), (1, 1, 1), (1, 0), (), (0, 1, 0, 0)])
def test_the_heaviest_decodes_are_those_of_all_decodes(begin):
    target, draft = table_pair("generic", 2, 0)
    decoder = speculative_sampling.build(Task(target, draft, horizon=3), gamma=2)
    whole = whole_run(decoder, (0,))
    equal = heaviest_paths(whole, lambda new: new == begin, 4, 10_000)
    begun = heaviest_paths(whole, lambda new: new[: len(begin)] == begin, 4, 10_000)
    assert [weight for weight, _ in heaviest_decodes(decoder, (0,), begin, 4, 1000)] == [weight for weight, _ in equal]
    found = heaviest_decodes(decoder, (0,), begin, 4, 1000, longer=True)
    assert [weight for weight, _ in found] == [weight for weight, _ in begun]
    assert all(replayed(whole, path) == path.outcome for _, path in found)


def replayed(program, path):
    """Return the result of ``program`` if its draws are those of ``path``."""
    return program(Replayed(path.choices))


def test_no_heaviest_decodes_if_a_round_depends_on_more_than_the_state():
    target, draft = table_pair("generic", 2, 0)
    right = speculative_sampling.build(Task(target, draft, horizon=2), gamma=1)
    before = [()]

    def step(draws, state):
        done = right.step(draws, state)[1]
        follows_the_first_round = before[-1] == (0,)
        before.append(state.tokens)
        token = 1 if len(state.tokens) > 1 and follows_the_first_round else 0
        return State((*state.tokens, token), state.remaining - 1), done

    assert heaviest_decodes(right._replace(step=step), (0,), (0, 1), 1, 1000) != []
    assert heaviest_decodes(right._replace(step=step), (0,), (0, 0), 1, 1000) == []


def test_a_horizon_of_zero_has_the_empty_text_for_certain():
    target, draft = table_pair("generic", 2, 0)
    assert decoder_law(speculative_sampling.build(Task(target, draft, horizon=0)), (0,)).probabilities == {(): 1}


@given(tasks(3, 0, 3), prompts(3))
def test_the_target_law_is_a_law_of_texts_that_end_where_they_must(task, prompt):
    law = target_law(task, prompt)
    assert sum(law.values()) == 1
    for new in law:
        assert len(new) == task.horizon or new[-1] in task.eos
        assert not any(token in task.eos for token in new[:-1])


@pytest.mark.parametrize("shape", ["generic", "peaked"])
def test_float64_laws_stay_within_their_rounding_bound(shape):
    target, draft = table_pair(shape, 3, 1)
    exact = target_law(Task(target, horizon=4), (0,))
    task = Task(as_float64(target), as_float64(draft), horizon=4)
    law = decoder_law(speculative_sampling.build(task, gamma=2), (0,))
    assert not is_rational(law)
    assert total_variation(law, target_law(task, (0,))).high <= rounding_bound(law, FLOAT64) < 1e-10
    assert project(law.probabilities, lambda new: new[0]) == pytest.approx(
        {token: float(mass) for token, mass in project(exact, lambda new: new[0]).items()}
    )


# Budgets


@given(st.integers(2, 60), st.sampled_from(["target", "biased"]))
def test_a_cut_off_law_brackets_the_true_distance(budget, kind):
    target, draft = table_pair("generic", 2, 3)
    task = Task(target, draft, horizon=4)
    row = speculative_sampling if kind == "target" else nasd_seed_rule
    decoder = row.build(task, gamma=2)
    cut, whole = decoder_law(decoder, (0, 0), budget), decoder_law(decoder, (0, 0))
    expected = target_law(task, (0, 0))
    true = total_variation(whole, expected)
    assert true.low == true.high
    assert (true.high > 0) == (kind == "biased")
    found = total_variation(cut, expected)
    assert found.low <= true.low <= found.high
    assert cut.runs <= budget
    assert sum(cut.probabilities.values()) + cut.missing == 1
    assert (cut.missing > 0) == (whole.runs > budget)


@given(st.integers(1, 6))
def test_a_program_cut_off_after_some_paths_misses_the_rest(budget):
    law = program_law(two_draws, budget)
    weights = [path.weight for path in paths(two_draws)]
    assert (law.runs, law.missing) == (min(budget, 5), sum(weights[budget:]))


def test_missing_mass_widens_the_distance_on_both_sides():
    law = Law({"a": Fraction(1, 2)}, missing=Fraction(1, 2))
    assert total_variation(law, {"a": Fraction(1, 2), "b": Fraction(1, 2)}) == (0, Fraction(1, 2))
    assert total_variation(law, {"a": Fraction(1, 4), "b": Fraction(3, 4)}) == (Fraction(1, 4), Fraction(3, 4))
    assert total_variation(Law(as_law(P)), as_law(Q)) == (Fraction(2, 5), Fraction(2, 5))


@pytest.mark.parametrize(("width", "depth"), [(2, 3), (3, 2), (1, 5)])
def test_the_estimate_of_a_balanced_tree_is_exact(width, depth):
    row = pmf(*[Fraction(1, width)] * width)
    program = lambda draws: [draws.categorical(row, (i,)) for i in range(depth)]  # noqa: E731
    assert estimated_paths(program, probes=3) == width**depth


def test_an_estimate_above_the_limit_needs_no_further_run():
    runs = []

    def program(draws):
        runs.append([draws.categorical(pmf(Fraction(1, 2), Fraction(1, 2)), (i,)) for i in range(8)])

    assert estimated_paths(program, most=256) == 256
    assert len(runs) == PROBES
    runs.clear()
    assert 100 < estimated_paths(program, most=100) < 256
    assert len(runs) == 7


def test_an_estimate_far_below_the_limit_needs_two_runs():
    runs = []

    def program(draws):
        runs.append([draws.categorical(pmf(Fraction(1, 2), Fraction(1, 2)), (i,)) for i in range(3)])

    assert estimated_paths(program, most=800) == 8
    assert len(runs) == 2
    runs.clear()
    assert estimated_paths(program, most=799) == 8
    assert len(runs) == PROBES


@pytest.mark.parametrize(("number", "more"), [(3, True), (4, False), (8, False), (1000, False)])
def test_a_program_has_more_paths_if_every_random_run_is_one_of_more_than_twice_as_many(number, more):
    row = pmf(Fraction(1, 2), Fraction(1, 2))
    assert has_more_paths(lambda draws: [draws.categorical(row, (i,)) for i in range(3)], number) is more


def test_the_estimate_of_an_unbalanced_tree_is_right_on_average():
    """Five paths: probes give 3 or 6, each outcome of the first draw equally likely."""
    assert estimated_paths(two_draws, probes=3000) == pytest.approx(5, abs=0.2)


def test_the_estimate_takes_a_list_of_probabilities_as_every_interpreter_does():
    assert estimated_paths(lambda draws: draws.categorical([Fraction(1, 3), Fraction(2, 3)], ("coin",))) == 2


def test_a_list_of_integers_is_an_exact_pmf():
    """A certain coin, min(p/q, 1) = 1, is often written [1, 0]: it must not turn a rational law into a rounded one."""
    assert is_rational(program_law(lambda draws: draws.categorical([1, 0], ("coin",))))


def test_a_hopeless_enumeration_is_refused_with_an_estimate():
    target, draft = table_pair("generic", 4, 0)
    decoder = speculative_sampling.build(Task(target, draft, horizon=9), gamma=8)
    with pytest.raises(
        EnumerationTooLarge, match=r"one round from \(0,\) has about .* paths, and the budget is 50 runs"
    ):
        decoder_law(decoder, (0,), budget=50)


# Programs that are not functions of their draws


def test_a_changed_site_is_named_with_both_questions():
    calls = []

    def program(draws):
        calls.append(None)
        draws.categorical(HALF, ("stable",))
        draws.categorical(HALF, ("moves", len(calls)))

    with pytest.raises(NotAFunctionOfItsDraws) as caught:
        list(paths(program))
    assert str(caught.value) == (
        "draw 1 was at ('moves', 1) with pmf (1/2, 1/2) and is at ('moves', 2) with pmf (1/2, 1/2) on replay, "
        "although all draws before it were answered alike"
    )


def test_a_changed_pmf_is_named():
    rows = iter([HALF, P])

    def program(draws):
        draws.categorical(next(rows), ("row",))

    with pytest.raises(
        NotAFunctionOfItsDraws, match=r"pmf \(1/2, 1/2\) and is at \('row',\) with pmf \(1/5, 3/10, 1/2\)"
    ):
        list(paths(program))


def test_a_draw_that_is_not_made_again_is_named():
    calls = []

    def program(draws):
        calls.append(None)
        if len(calls) == 1:
            draws.categorical(HALF, ("once",))

    with pytest.raises(NotAFunctionOfItsDraws, match=r"draw 0 at \('once',\) was not made on replay"):
        list(paths(program))


def test_a_program_that_draws_for_ever_is_stopped():
    def program(draws):
        while True:
            draws.categorical(pmf(1), ("again",))

    with pytest.raises(NotAFunctionOfItsDraws, match=f"more than {MOST_DECISIONS} draws on one path"):
        next(paths(program))


def test_a_round_that_commits_nothing_is_refused():
    stuck = Decoder(init=lambda prompt: State(prompt, 3), step=lambda draws, state: (state, Round((), (), 0, 0)))
    with pytest.raises(ValueError, match=r"a round committed no token after \(0,\), expected at least one"):
        decoder_law(stuck, (0,))


def test_the_shares_of_a_program_add_up_to_its_law():
    """Enumerated in parts by the outcomes of its first draws, a program has the law it has as a whole."""
    target, draft = table_pair("generic", 3, 0)
    decoder = speculative_sampling.build(Task(target, draft, horizon=3), gamma=2)
    program = whole_run(decoder, (0,))
    whole = program_law(program)
    shares = first_outcomes(program, depth=3)
    parts = [program_law(program, first=share) for share in shares]
    together = combined_law(parts)
    assert len(shares) > 3
    assert whole.probabilities == together.probabilities
    assert whole.runs == together.runs
    cut = program_law(program, budget=1, first=shares[0])
    assert sum(cut.probabilities.values()) + cut.missing == sum(parts[0].probabilities.values())


def test_an_outcome_that_is_too_rare_is_no_share():
    """The end of a cdf that adds up to less than 1 has the mass of a rounding, and no path is followed behind it."""

    def program(draws):
        first = draws.categorical(np.array([0.25, 0.75, 2.0**-54]), ("a row",))
        return first, draws.categorical(np.array([0.5, 0.5]), ("another",))

    assert first_outcomes(program, depth=2) == [(0, 0), (0, 1), (1, 0), (1, 1)]


# One round


@pytest.mark.parametrize("eos", [(), (1,)])
def test_one_round_decides_what_several_rounds_decide(eos):
    target, draft = table_pair("generic", 2, seed=3)
    task = Task(target, draft, horizon=4, eos=eos)
    promised, right = target_law(task, (0,)), speculative_sampling.build(task, gamma=2)
    law = one_round_law(right, task, (0,))
    assert law.probabilities == promised == decoder_law(right, (0,)).probabilities
    assert (law.coverage.rounds, law.coverage.rounds_of_two) == (1, 1)
    assert law.runs < decoder_law(right, (0,)).runs
    of_q = speculative_sampling.build(task._replace(target=draft), gamma=2)
    assert promised not in (one_round_law(of_q, task, (0,)).probabilities, decoder_law(of_q, (0,)).probabilities)


def test_a_first_round_without_a_token_is_refused():
    task = Task(*table_pair("generic", 2, seed=3), horizon=2)
    idle = Decoder(init=lambda prompt: State(prompt, 2), step=lambda draws, state: (state, Round((), (), 0, 0)))
    with pytest.raises(ValueError, match="committed no token after \\(0,\\)"):
        one_round_law(idle, task, (0,))
