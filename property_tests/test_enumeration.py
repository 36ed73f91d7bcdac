"""Exact laws by enumeration, the interpreters of draws, and what happens when a program is not what it should be."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rational import P, Q, as_law, examples, law_of, pmf, project

from reference import ALGORITHMS, Decoder, Round, State, Task, flip, generate
from reference.algorithms import nasd_seed_rule, speculative_sampling
from specverify.draws import Decision, FromHypothesis, Narrated, NotAFunctionOfItsDraws, Replayed, Tape, support
from specverify.enumeration import (
    MOST_DECISIONS,
    EnumerationTooLarge,
    decoder_law,
    estimated_paths,
    paths,
    program_law,
    whole_run,
)
from specverify.law import Law, is_rational, rounding_bound, target_law, total_variation
from specverify.strategies import pmfs, prompts, tasks
from specverify.tables import as_float64, table_pair

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

CASES = [pytest.param(row, options, id=f"{row.name} {dict(options)}") for row in ALGORITHMS for options in row.examples]


@pytest.mark.parametrize(("row", "options"), CASES)
@examples(6)
@given(task=tasks(2, 2, 3), prompt=prompts(2))
def test_merged_and_unmerged_laws_are_equal(row, options, task, prompt):
    decoder = row.build(task, **options)
    assert decoder_law(decoder, prompt).probabilities == law_of(whole_run(decoder, prompt))


def test_merging_saves_runs_and_reports_what_was_gone_through():
    target, draft = table_pair("generic", 2, 0)
    decoder = speculative_sampling.build(Task(target, draft, horizon=5), gamma=2)
    law = decoder_law(decoder, (0,))
    assert law.runs < program_law(whole_run(decoder, (0,))).runs
    assert (law.missing, law.coverage.rounds, law.coverage.rounds_of_two) == (0, 5, 3)
    assert law.coverage.outcomes == {(2, 0), (2, 1), (2, 2), (1, 0), (1, 1), (0, 0)}


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
    assert total_variation(law, target_law(task, (0,))).high <= rounding_bound(law, 3) < 1e-10
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


def test_the_estimate_of_an_unbalanced_tree_is_right_on_average():
    """Five paths: probes give 3 or 6, each outcome of the first draw equally likely."""
    assert estimated_paths(two_draws, probes=3000) == pytest.approx(5, abs=0.2)


def test_a_hopeless_enumeration_is_refused_with_an_estimate():
    target, draft = table_pair("generic", 4, 0)
    decoder = speculative_sampling.build(Task(target, draft, horizon=9), gamma=8)
    with pytest.raises(EnumerationTooLarge, match=r"one round from \(0,\) has about .* paths, and the budget is 50 runs"):
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

    with pytest.raises(NotAFunctionOfItsDraws, match=r"pmf \(1/2, 1/2\) and is at \('row',\) with pmf \(1/5, 3/10, 1/2\)"):
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


# Interpreters


@given(st.integers(0, 4))
def test_a_replayed_path_is_the_path(index):
    path = list(paths(two_draws))[index]
    draws = Replayed(path.choices)
    assert two_draws(draws) == path.outcome
    assert draws.used == len(path.choices)


@pytest.mark.parametrize(
    ("choices", "sentence"),
    [
        ((), r"a draw at \('first',\) after the 0 recorded ones"),
        ((1,), r"a draw at \('second', 1\) after the 1 recorded ones"),
        ((3,), r"draw 0 at \('first',\) cannot be 3: it has probability 0 there"),
        ((1, -1), r"draw 1 at \('second', 1\) cannot be -1"),
    ],
)
def test_choices_of_another_path_are_refused(choices, sentence):
    with pytest.raises(NotAFunctionOfItsDraws, match=sentence):
        two_draws(Replayed(choices))


@given(st.integers(0, 10_000))
def test_a_tape_answers_by_site_and_occurrence_whatever_the_order(seed):
    one, other = Tape(seed), Tape(seed)
    first = [one.uniform(("a",)), one.uniform(("b", 1)), one.uniform(("a",))]
    second = [other.uniform(("b", 1)), other.uniform(("a",)), other.uniform(("a",))]
    assert first == [second[1], second[0], second[2]]
    assert len(set(first)) == 3
    assert all(0 <= uniform < 1 for uniform in first)


def test_tapes_of_different_seeds_differ_and_given_uniforms_win():
    assert Tape(0).uniform(("a",)) != Tape(1).uniform(("a",))
    tape = Tape(0, {(("a",), 1): 0.75})
    assert (tape.uniform(("a",)), tape.uniform(("a",))) == (Tape(0).uniform(("a",)), 0.75)
    assert Tape(0, {(("x",), 0): 0.5}).categorical(P, ("x",)) == 2


def test_uniforms_of_a_tape_fill_the_unit_interval():
    uniforms = [Tape(seed).uniform(("a",)) for seed in range(400)]
    assert all(any(lower <= uniform < lower + 0.1 for uniform in uniforms) for lower in (0.1 * i for i in range(10)))


@given(st.data())
def test_adversarial_draws_are_possible_ones(data):
    row = data.draw(pmfs(4))
    assert FromHypothesis(data).categorical(row, ("any",)) in support(row)


def test_narrated_draws_are_the_inner_ones_written_down():
    narrated = Narrated(Tape(3))
    assert two_draws(narrated) == two_draws(Tape(3))
    assert [decision.site[0] for decision in narrated.decisions][0] == "first"
    assert tuple(decision.outcome for decision in narrated.decisions) == two_draws(Tape(3))


@given(tasks(3, 1, 5), prompts(3), st.integers(0, 99))
def test_what_was_narrated_can_be_replayed(task, prompt, seed):
    decoder = speculative_sampling.build(task, gamma=2)
    narrated = Narrated(Tape(seed))
    first = generate(decoder, prompt, narrated)
    again = generate(decoder, prompt, Replayed([decision.outcome for decision in narrated.decisions]))
    assert again == first


@pytest.mark.parametrize("draws", [Replayed((0,)), Tape(0), Narrated(Tape(0))], ids=["replayed", "tape", "narrated"])
def test_every_interpreter_refuses_what_is_no_pmf(draws):
    with pytest.raises(ValueError, match=r"the pmf at \('x',\) sums to 9/10, expected 1"):
        draws.categorical(pmf("1/2", "2/5"), ("x",))


@given(st.fractions(0, 1, max_denominator=9))
def test_a_coin_comes_up_with_its_probability(probability):
    law = law_of(lambda draws: flip(draws, probability, ("coin",)))
    assert law.get(True, 0) == probability
    assert sum(law.values()) == 1
