"""Many runs at the price of one run a path: the counts have exactly the law of the counts of independent runs."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency

from reference import ALGORITHMS, Sampled, Task, generate
from reference.algorithms import nasd, speculative_sampling
from specverify.laws import divided as module
from specverify.laws.divided import divided, divided_counts
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law
from specverify.laws.tables import table_pair
from specverify.statistics import goodness_of_fit
from specverify.subjects.algorithm import PROMPT, float_task
from test_support.laws.rational import law_of, pmf

IMPROBABLE = 1e-9
TARGETS = pmf("1/2", "1/4", "1/4"), pmf("1/4", 0, "3/4")
DRAFTS = pmf("1/4", "1/4", "1/2"), pmf("1/2", 0, "1/2")
DYADIC = Task(lambda tokens: TARGETS[sum(tokens) % 2], lambda tokens: DRAFTS[sum(tokens) % 2], horizon=2)
"""Every acceptance probability and residual is a binary fraction, so nothing is rounded on the way to a multinomial."""


class EnumeratedDivisions(np.random.Generator):
    """Answers multinomials from the enumerator: the law of the counts can then be compared as rationals."""

    def __init__(self, draws):
        """``draws`` answers every multinomial."""
        super().__init__(np.random.PCG64(0))
        self.draws = draws

    def multinomial(self, number, masses):
        """Return every way to divide ``number`` in turn."""
        ways = [Counter(way) for way in combinations_with_replacement(range(len(masses)), number)]
        shares = [[way[outcome] for outcome in range(len(masses))] for way in ways]
        weights = [multinomial_probability(share, [Fraction(mass) for mass in masses]) for share in shares]
        return np.array(shares[self.draws.categorical(np.array(weights, dtype=object), ("multinomial",))])


def multinomial_probability(share, masses):
    weight = Fraction(math.factorial(sum(share)))
    for count, mass in zip(share, masses, strict=True):
        weight *= mass**count / Fraction(math.factorial(count))
    return weight


def law_of_counts(law, number):
    """Return counts -> probability for ``number`` independent outcomes of ``law``, one after the other."""
    found = {(): Fraction(1)}
    for _ in range(number):
        more = defaultdict(Fraction)
        for counts, weight in found.items():
            for outcome, mass in law.items():
                more[tuple(sorted((Counter(dict(counts)) + Counter([outcome])).items()))] += weight * mass
        found = dict(more)
    return found


def law_of_divided_counts(decoder, number):
    def program(draws):
        return tuple(sorted(divided_counts(decoder, (0,), number, EnumeratedDivisions(draws)).items()))

    return law_of(program)


DECODERS = [
    pytest.param(speculative_sampling.build(DYADIC, gamma=1), 3, id="speculative sampling"),
    pytest.param(nasd.build(DYADIC._replace(horizon=3), order=2, gamma=2), 2, id="nasd"),
]


@pytest.mark.parametrize(("decoder", "number"), DECODERS)
def test_the_counts_have_the_law_of_independent_runs_as_rationals(decoder, number):
    assert law_of_divided_counts(decoder, number) == law_of_counts(decoder_law(decoder, (0,)).probabilities, number)


def expected_shares(weights, number, rng):
    """Give every outcome what it expects, rounded, and the last one the rest: no randomness at all."""
    shares = [round(number * weight / sum(weights)) for weight in weights[:-1]]
    return [*shares, number - sum(shares)]


def without_one(weights, number, rng):
    """Forget an outcome: those that took it go on with the first."""
    first, *others = divided(weights, number, rng)
    return [first + others[-1], *others[:-1], 0] if others else [first]


def everyone_alike(weights, number, rng):
    """Draw once for all: every run goes the same way."""
    chosen = divided(weights, 1, rng)
    return [share * number for share in chosen]


def reversed_weights(weights, number, rng):
    """Give the first outcome what is the last one's."""
    return divided(weights[::-1], number, rng)


def reused():
    """Use one multinomial for equal questions."""
    known = {}

    def shares(weights, number, rng):
        key = (tuple(weights), number)
        if key not in known:
            known[key] = divided(weights, number, rng)
        return known[key]

    return shares


WRONG = {
    "expected": lambda: expected_shares,
    "dropped outcome": lambda: without_one,
    "everyone alike": lambda: everyone_alike,
    "reversed weights": lambda: reversed_weights,
    "reused multinomial": reused,
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_rule_of_division_gives_another_law(monkeypatch, wrong):
    """A multinomial that is used again keeps every mean: only the joint law of the counts shows it."""
    decoder = speculative_sampling.build(DYADIC, gamma=1)

    def program(draws):
        monkeypatch.setattr(module, "divided", WRONG[wrong]())
        return tuple(sorted(divided_counts(decoder, (0,), 3, EnumeratedDivisions(draws)).items()))

    found, right = law_of(program), law_of_counts(decoder_law(decoder, (0,)).probabilities, 3)
    assert sum(found.values()) == 1
    assert found != right


def test_equal_states_are_counted_together_and_not_twice():
    """A state that is run for each way that leads to it keeps the law; counting a way twice would not."""
    decoder = speculative_sampling.build(DYADIC, gamma=1)
    counts = divided_counts(decoder, (0,), 10_000, 3)
    assert counts.total() == 10_000
    assert counts.keys() <= decoder_law(decoder, (0,)).probabilities.keys()


# With a generator


def statistics_over_seeds(decoder, law, number, seeds):
    return [goodness_of_fit(divided_counts(decoder, PROMPT, number, seed), law) for seed in seeds]


def test_pearsons_statistic_over_many_seeds_is_chi_square_neither_too_large_nor_too_small():
    """The sum over seeds sees means that are off, and samples that are spread too much or too little."""
    task = float_task(4, 1.0, 2)
    fits = statistics_over_seeds(speculative_sampling.build(task, gamma=2), target_law(task, PROMPT), 5000, range(200))
    total, freedom = sum(fit.statistic for fit in fits), sum(fit.cells - 1 for fit in fits)
    assert IMPROBABLE < chi2.sf(total, freedom) < 1 - IMPROBABLE


@pytest.mark.parametrize("wrong", ["expected", "reused multinomial", "everyone alike"])
def test_the_spread_over_seeds_sees_a_wrong_rule(monkeypatch, wrong):
    task = float_task(4, 1.0, 2)
    monkeypatch.setattr(module, "divided", WRONG[wrong]())
    fits = statistics_over_seeds(speculative_sampling.build(task, gamma=2), target_law(task, PROMPT), 5000, range(200))
    tail = chi2.sf(sum(fit.statistic for fit in fits), sum(fit.cells - 1 for fit in fits))
    assert not IMPROBABLE < tail < 1 - IMPROBABLE


def two_sample_p_value(one, other):
    outcomes = [outcome for outcome in one | other if one[outcome] + other[outcome] >= 20]
    return chi2_contingency([[counts[outcome] for outcome in outcomes] for counts in (one, other)]).pvalue


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("row", ALGORITHMS[::6], ids=lambda row: row.name)
def test_divided_and_plain_samples_are_of_one_law(row):
    task = float_task(4, 1.0, 2)
    decoder, draws = row.build(task, **row.examples[-1]), Sampled(1)
    plain = Counter(generate(decoder, PROMPT, draws).tokens for _ in range(2000))
    assert two_sample_p_value(divided_counts(decoder, PROMPT, 200_000, 2), plain) > IMPROBABLE


def test_two_samples_of_different_laws_are_told_apart():
    """The control of the test above: the target at another temperature."""
    one, other = (speculative_sampling.build(float_task(4, heat, 2), gamma=1) for heat in (1.0, 1.3))
    draws = Sampled(1)
    plain = Counter(generate(other, PROMPT, draws).tokens for _ in range(2000))
    assert two_sample_p_value(divided_counts(one, PROMPT, 200_000, 2), plain) < IMPROBABLE


# How many runs


def with_steps_counted(decoder):
    steps = []

    def step(draws, state):
        steps.append(state)
        return decoder.step(draws, state)

    return decoder._replace(step=step), steps


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("row", ALGORITHMS, ids=lambda row: row.name)
def test_the_runs_are_paths_of_the_enumeration_and_the_counts_fit_the_law(row):
    """As many as there are once every path gets some; no more rounds than the samples have if they are few."""
    target, draft = table_pair("generic", 3, 1)
    decoder, steps = with_steps_counted(row.build(Task(target, draft, horizon=3), **row.examples[-1]))
    law = decoder_law(decoder, (0, 1, 0))
    steps.clear()
    counts = divided_counts(decoder, (0, 1, 0), 10**18, 5)
    assert len(steps) == law.runs
    assert goodness_of_fit(counts, {new: float(mass) for new, mass in law.probabilities.items()}).p_value > IMPROBABLE
    steps.clear()
    assert divided_counts(decoder, (0, 1, 0), 5, 5).total() == 5
    assert len(steps) <= min(law.runs, 5 * 3)
