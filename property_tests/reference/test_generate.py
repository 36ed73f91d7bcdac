"""The conveniences: tokens in three lines, inverse CDF at its boundaries, and every refusal in one sentence."""

from __future__ import annotations

import inspect
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reference import (
    Sampled,
    as_pmf,
    autoregressive_generate,
    check_pmf,
    checked_model,
    egag_generate,
    inverse_cdf,
    nasd_generate,
    one_hot,
    speculative_generate,
)
from reference.algorithms import egag, nasd
from specverify.laws.model_strategies import pmfs
from specverify.laws.tables import as_float64, table_pair
from test_support.laws.rational import P, Q, always, as_law, pmf

TARGET, DRAFT = table_pair("generic", 3, 7)
GENERATORS = {
    "autoregressive": lambda prompt=(0, 1), **options: autoregressive_generate(TARGET, prompt, **options),
    "speculative": lambda prompt=(0, 1), **options: speculative_generate(TARGET, DRAFT, prompt, **options),
    "nasd": lambda prompt=(0, 1), **options: nasd_generate(TARGET, prompt, **options),
    "egag": lambda prompt=(0, 1), **options: egag_generate(TARGET, DRAFT, prompt, **options),
}
every_generator = pytest.mark.parametrize("run", GENERATORS.values(), ids=GENERATORS)

LAST = 1 - 2**-53
"""The largest uniform a generator can return."""


@every_generator
def test_a_seed_reproduces_the_generation(run):
    assert run(max_new_tokens=20, seed=5) == run(max_new_tokens=20, seed=5)


@every_generator
def test_seeds_differ(run):
    assert len({run(max_new_tokens=20, seed=seed).tokens for seed in range(5)}) == 5


@every_generator
@pytest.mark.parametrize("length", [0, 1, 2, 17])
def test_a_generation_has_the_length_asked_for(run, length):
    generation = run(max_new_tokens=length, seed=1)
    assert len(generation.tokens) == length == sum(len(round_.tokens) for round_ in generation.rounds)


@every_generator
def test_a_generation_ends_at_the_first_end_of_sequence_token(run):
    """Every token is one: a single token comes out, whatever was drafted."""
    for seed in range(5):
        assert len(run(max_new_tokens=9, eos=(0, 1, 2), seed=seed).tokens) == 1
        new = run(max_new_tokens=30, eos=(2,), seed=seed).tokens
        assert new.index(2) == len(new) - 1


def test_options_reach_the_algorithm():
    rounds = speculative_generate(TARGET, DRAFT, (0,), max_new_tokens=30, gamma=2, seed=0).rounds
    assert max(len(round_.draft) for round_ in rounds) == 2
    rounds = egag_generate(TARGET, DRAFT, (0,), max_new_tokens=30, gamma_min=3, gamma_max=3, seed=0).rounds
    assert {len(round_.draft) for round_ in rounds[:-2]} == {3}
    raw = egag_generate(always(P), always(pmf(1, 0, 0)), (0,), max_new_tokens=9, raw_draft=always(pmf(*["1/3"] * 3)))
    assert dict(raw.rounds[0].trace) == pytest.approx({"normalized_entropy": 1, "gamma": 1})
    rounds = nasd_generate(always(pmf(1, 0)), (0, 0, 0), max_new_tokens=9, order=2, gamma=3, seed=0).rounds
    assert rounds[0].draft == (0, 0, 0)


def test_the_statistics_of_a_generation_are_those_of_its_rounds():
    generation = speculative_generate(TARGET, TARGET, (0,), max_new_tokens=20, gamma=4, seed=0)
    statistics = generation.statistics
    assert (statistics.tokens, statistics.rounds, statistics.acceptance_rate) == (20, 4, 1.0)


def test_lists_and_float_arrays_are_pmfs_too():
    rows = [0.2, 0.3, 0.5], np.array([0.2, 0.3, 0.5])
    one, other = (speculative_generate(always(row), always(row), (0,), max_new_tokens=9, seed=4).tokens for row in rows)
    assert one == other
    assert as_pmf([Fraction(1, 2), Fraction(1, 2)]).dtype == object


def test_rationals_and_their_float64_values_sample_alike():
    one, other = (
        speculative_generate(target, draft, (0,), max_new_tokens=40, seed=2).tokens
        for target, draft in ((TARGET, DRAFT), (as_float64(TARGET), as_float64(DRAFT)))
    )
    assert one == other


# The inverse of the cumulative pmf


@given(st.integers(1, 6).flatmap(pmfs), st.floats(0, LAST), st.booleans())
@example(pmf(0, 0, 1, 0), 0.0, True)
@example(pmf(0, "1/3", "2/3", 0), LAST, True)
@example(pmf(0, "1/3", "2/3", 0), LAST, False)
def test_no_uniform_returns_an_impossible_outcome(row, uniform, floating):
    row = row.astype(np.float64) if floating else row
    assert all(row[inverse_cdf(row, u)] > 0 for u in (uniform, 0.0, LAST))


def test_outcomes_are_intervals_of_the_uniform_closed_on_the_left():
    for row in (pmf("1/4", 0, "1/4", "1/2"), np.array([0.25, 0, 0.25, 0.5])):
        assert [inverse_cdf(row, u) for u in (0.0, 0.2499, 0.25, 0.4999, 0.5, LAST)] == [0, 0, 2, 2, 3, 3]


@given(st.integers(1, 6).flatmap(pmfs))
def test_the_measure_of_uniforms_with_an_outcome_is_its_probability(row):
    """At the midpoints of a grid as fine as the common denominator, counting is exact."""
    cells = int(np.lcm.reduce([mass.denominator for mass in row]))
    found = Counter(inverse_cdf(row, Fraction(2 * cell + 1, 2 * cells)) for cell in range(cells))
    assert {token: Fraction(count, cells) for token, count in found.items()} == as_law(row)


def test_a_pmf_that_sums_to_a_little_under_one_still_answers():
    row = np.array([0.5, 0.5 - 1e-10, 0.0])
    assert inverse_cdf(row, LAST) == 1


@pytest.mark.parametrize("row", [[np.nan, 1.0], [-1.0, 2.0], [1.0, -0.5], [np.nan]])
@pytest.mark.parametrize("kind", [list, np.array, lambda row: np.array(row, dtype=object)])
def test_a_row_with_a_negative_entry_or_nan_has_no_outcome(row, kind):
    with pytest.raises(ValueError, match=r"the pmf is .*, expected probabilities of at least 0"):
        inverse_cdf(kind(row), 0.5)


@pytest.mark.parametrize("row", [Q, Q.astype(np.float64)])
def test_frequencies_approach_the_pmf(row):
    draws = Sampled(11)
    found = Counter(draws.categorical(row, ("test",)) for _ in range(4000))
    assert all(abs(found[token] / 4000 - float(mass)) < 0.05 for token, mass in enumerate(row))


def test_the_point_mass_refuses_a_token_outside_the_vocabulary():
    with pytest.raises(ValueError, match=r"token 3 is outside the vocabulary 0\.\.2"):
        one_hot(3, P)
    with pytest.raises(ValueError, match="token -1 is outside the vocabulary"):
        one_hot(-1, P)


# Refusals


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ([0.5, 0.4], r"the target pmf after \(0, 1\) sums to 0.9, expected 1"),
        ([Fraction(1, 2), Fraction(1, 3)], r"the target pmf after \(0, 1\) sums to 5/6, expected 1"),
        ([1.5, -0.5], r"has a negative entry \(-0.5\), expected probabilities >= 0"),
        (pmf("3/2", "-1/2"), r"has a negative entry \(-1/2\), expected probabilities >= 0"),
        ([0.5, float("nan")], "contains NaN, expected finite probabilities"),
        ([float("inf"), 0.0], "sums to inf, expected 1"),
        (np.eye(2), r"is an array of shape \(2, 2\), expected a 1-D array of numbers \[vocabulary\]"),
        ([], r"is an array of shape \(0,\), expected a 1-D array of numbers \[vocabulary\]"),
        (0.5, r"is float, expected a 1-D array of numbers \[vocabulary\]"),
        (None, r"the target pmf after \(0, 1\) is NoneType, expected a 1-D array of numbers"),
        ([0.5, None], r"the target pmf after \(0, 1\) is \[0.5, None\], expected real numbers"),
    ],
)
@pytest.mark.parametrize("generator", [autoregressive_generate, nasd_generate])
def test_a_target_row_that_is_no_pmf_is_refused_by_name(generator, row, sentence):
    with pytest.raises(ValueError, match=sentence):
        generator(always(row), (0, 1), max_new_tokens=2, seed=0)


def test_the_options_of_a_generator_are_those_of_its_algorithm():
    for generator, algorithm in ((nasd_generate, nasd), (egag_generate, egag)):
        options = dict(list(inspect.signature(algorithm.build).parameters.items())[1:])
        own = inspect.signature(generator).parameters
        assert {name: own[name].default for name in options} == {
            name: option.default for name, option in options.items()
        }
        with pytest.raises(TypeError, match=rf"{generator.__name__}\(\) got an unexpected keyword argument 'foo'"):
            generator(foo=1)


@pytest.mark.parametrize("prompt", [[0, 1, 0], np.array([0, 1, 0])])
@every_generator
def test_a_prompt_may_be_a_list_or_an_array(run, prompt):
    generation = run(prompt, max_new_tokens=9, seed=3)
    assert generation == run((0, 1, 0), max_new_tokens=9, seed=3)
    assert {type(token) for round_ in generation.rounds for token in (*round_.tokens, *round_.draft)} == {int}


def test_a_draft_row_that_is_no_pmf_is_refused_by_name():
    with pytest.raises(ValueError, match=r"the draft pmf after \(0,\) sums to 0.9, expected 1"):
        speculative_generate(always([0.5, 0.5]), always([0.5, 0.4]), (0,), max_new_tokens=2, seed=0)
    with pytest.raises(ValueError, match=r"the raw draft pmf after \(0,\) sums to 0.9, expected 1"):
        egag_generate(
            always([0.5, 0.5]), always([0.5, 0.5]), (0,), max_new_tokens=2, raw_draft=always([0.5, 0.4]), seed=0
        )


def test_rounding_of_a_float32_softmax_is_no_fault():
    row = np.array([0.3, 0.3, 0.4 + 2e-6], dtype=np.float32)
    assert check_pmf(row, "p") is row
    with pytest.raises(ValueError, match="sums to"):
        check_pmf(row.astype(np.float64), "p")


def test_models_with_different_vocabularies_are_refused():
    sentence = "target and draft vocabularies differ: p has 2 tokens, q has 3; expected one size"
    with pytest.raises(ValueError, match=sentence):
        speculative_generate(always([0.5, 0.5]), always([0.5, 0.5, 0.0]), (0,), max_new_tokens=3, seed=0)


@pytest.mark.parametrize("gamma", [-1, True, 1.0])
def test_a_gamma_that_is_no_count_is_refused(gamma):
    with pytest.raises(ValueError, match=f"gamma is {gamma!r}, expected an integer >= 0"):
        speculative_generate(TARGET, DRAFT, (0,), max_new_tokens=3, gamma=gamma)


@every_generator
def test_a_negative_number_of_tokens_is_refused(run):
    with pytest.raises(ValueError, match="horizon is -2, expected a number of new tokens >= 0"):
        run(max_new_tokens=-2)


def test_a_checked_model_checks_again_what_may_have_changed():
    """A read-only row is checked once; another row, and one that can be written into, at every request."""
    row = np.array([0.5, 0.5])
    model = checked_model(lambda tokens: row, "target")
    assert model((0,)) is row
    row[0] = 1.0
    with pytest.raises(ValueError, match=r"the target pmf after \(0,\) sums to 1.5, expected 1"):
        model((0,))
    row[0] = 0.5
    row.flags.writeable = False
    assert model((0,)) is model((0,)) is row
    row = np.array([0.5, 0.6])
    row.flags.writeable = False
    for tokens in ((0,), (1,)):
        with pytest.raises(ValueError, match=r"sums to 1.1, expected 1"):
            model(tokens)


def test_a_checked_model_names_itself_and_the_tokens():
    with pytest.raises(ValueError, match=r"the drafter pmf after \(1, 2\) sums to 2.0, expected 1"):
        checked_model(always([1.0, 1.0]), "drafter")((1, 2))
