"""The interpreters of draws: replayed, coupled by a tape, chosen by Hypothesis, narrated."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import flip, generate
from reference.algorithms import speculative_sampling
from specverify.laws.draws import FromHypothesis, Narrated, NotAFunctionOfItsDraws, Replayed, Tape, support
from specverify.laws.model_strategies import pmfs, prompts, tasks
from specverify.laws.paths import paths
from test_support.laws.rational import P, law_of, pmf


def two_draws(draws):
    """A second draw only after outcomes 1 and 2 of the first."""
    first = draws.categorical(P, ("first",))
    return (first,) if first == 0 else (first, draws.categorical(pmf("1/2", "1/2"), ("second", first)))


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


def test_a_program_that_draws_without_end_is_ended_by_the_tape(monkeypatch):
    monkeypatch.setattr("specverify.laws.draws.MOST_OF_SITE", 50)
    tape = Tape(0)
    for _ in range(50):
        tape.uniform(("again",))
    with pytest.raises(NotAFunctionOfItsDraws, match=r"more than 50 draws in one run at \('again',\): it draws with"):
        tape.uniform(("again",))


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
    assert narrated.decisions[0].site == ("first",)
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


def test_every_interpreter_takes_a_list_of_probabilities():
    """As ``Sampled`` does; integers and fractions stay exact."""
    coin = lambda draws: draws.categorical([Fraction(1, 3), Fraction(2, 3)], ("coin",))  # noqa: E731
    assert law_of(coin) == {0: Fraction(1, 3), 1: Fraction(2, 3)}
    assert [coin(Tape(0)) in {0, 1}, coin(Replayed((1,))), coin(Narrated(Replayed((0,))))] == [True, 1, 0]
