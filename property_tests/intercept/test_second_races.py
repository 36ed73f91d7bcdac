"""The same noise with other weights: the law of a second race is what noise really does, and a third is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import NeedsValue
from specverify.laws.enumeration import program_law

RNG = np.random.default_rng(11)
SAMPLES = 200_000
ALARM = 1e-6
WEIGHTS = (
    ((0.2, 0.3, 0.5), (0.5, 0.3, 0.2)),
    ((0.5, 0.5, 0.0), (0.0, 0.6, 0.4)),
    ((0.7, 0.2, 0.1), (0.7, 0.1, 0.2)),
    ((0.1, 0.0, 0.4, 0.5), (0.0, 0.9, 0.05, 0.05)),
    ((0.0, 1.0, 0.0), (0.3, 0.3, 0.4)),
)


def winners(*weights, size=()):
    """Return the first of each race of the same exponential noise."""
    noise = RNG.exponential(size=(*size, len(weights[0])))
    return [np.argmax(np.array(each) / noise, axis=-1) for each in weights]


def gumbel_winners(*weights, size=()):
    """Return the same of Gumbel noise."""
    noise = RNG.gumbel(size=(*size, len(weights[0])))
    with np.errstate(divide="ignore"):
        return [np.argmax(np.log(np.array(each)) + noise, axis=-1) for each in weights]


def law_of(race, *weights):
    def program(draws):
        with answered_everywhere(draws):
            return tuple(int(each) for each in race(*weights))

    return program_law(program).probabilities


@pytest.mark.parametrize("race", [winners, gumbel_winners])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_two_races_of_the_same_noise_have_the_law_of_real_noise(race, weights):
    law = law_of(race, *weights)
    firsts = np.stack(race(*weights, size=(SAMPLES,)), axis=-1)
    outcomes = sorted(law)
    counts = [int((firsts == outcome).all(axis=-1).sum()) for outcome in outcomes]
    assert sum(counts) == SAMPLES, "nothing comes out that the law does not have"
    assert abs(sum(law.values()) - 1) < 1e-12
    if len(outcomes) > 1:
        assert chisquare(counts, [law[outcome] * SAMPLES for outcome in outcomes]).pvalue > ALARM
    independent = {pair: weights[0][pair[0]] * weights[1][pair[1]] for pair in outcomes}
    if len(outcomes) > 1 and 1.0 not in weights[0]:
        expected = np.array(list(independent.values()))
        assert chisquare(counts, expected / expected.sum() * SAMPLES).pvalue < ALARM, "they are not independent"


@pytest.mark.parametrize("weights", WEIGHTS)
def test_each_race_by_itself_has_its_weights(weights):
    law = law_of(winners, *weights)
    for place, each in enumerate(weights):
        alone = [sum(mass for pair, mass in law.items() if pair[place] == token) for token in range(len(each))]
        assert alone == pytest.approx(each, abs=1e-12)


def test_a_race_of_the_same_weights_has_the_same_first():
    assert all(one == other for one, other in law_of(winners, (0.2, 0.3, 0.5), (0.4, 0.6, 1.0)))


def test_a_third_race_is_refused():
    with pytest.raises(NeedsValue, match="second race"):
        law_of(winners, (0.2, 0.3, 0.5), (0.5, 0.3, 0.2), (0.3, 0.5, 0.2))


def test_noise_is_compared_no_more_after_two_races():
    def program(draws):
        with answered_everywhere(draws):
            noise = RNG.exponential(size=3)
            firsts = [int(np.argmax(np.array(each) / noise)) for each in ((0.2, 0.3, 0.5), (0.5, 0.3, 0.2))]
            return (*firsts, bool(noise[0] < 1))

    with pytest.raises(NeedsValue, match="already decided a race"):
        program_law(program)


def exponential(size):
    """Return exponential noise, scores of weights with it, and the values with which the noise is compared."""
    return RNG.exponential(size=size), lambda weights, noise: np.array(weights) / noise, (0.2, 1.0)


def gumbel(size):
    """Return the same for Gumbel noise."""
    return RNG.gumbel(size=size), lambda weights, noise: np.log(np.array(weights)) + noise, (-0.5, 1.0)


def uniform(size):
    """Return the same for uniform noise, of which the powers race."""
    return RNG.random(size=size), lambda weights, noise: noise ** (1 / np.array(weights)), (0.4, 0.8)


def mirrored(size):
    """Return the same for functions of 1 - u."""
    return RNG.random(size=size), lambda weights, noise: np.array(weights) / -np.log(1 - noise), (0.4, 0.8)


@pytest.mark.parametrize("place", [0, 2])
@pytest.mark.parametrize("noise_of", [exponential, gumbel, uniform, mirrored])
def test_noise_that_raced_is_compared_with_numbers(noise_of, place):
    """The joint law of the winner and of two comparisons of one number is that of real noise."""
    weights = (0.2, 0.3, 0.5)

    def program(draws):
        with answered_everywhere(draws):
            noise, scores, (low, high) = noise_of(3)
            first = int(np.argmax(scores(weights, noise)))
            return first, bool(noise[place] < low), bool(noise[place] < high)

    law = program_law(program).probabilities
    noise, scores, (low, high) = noise_of((SAMPLES, 3))
    firsts = np.argmax(scores(weights, noise), axis=-1)
    samples = np.stack([firsts, noise[:, place] < low, noise[:, place] < high], axis=-1)
    outcomes = sorted(law)
    counts = [int((samples == outcome).all(axis=-1).sum()) for outcome in outcomes]
    assert sum(counts) == SAMPLES, "nothing comes out that the law does not have"
    assert chisquare(counts, [law[outcome] * SAMPLES for outcome in outcomes]).pvalue > ALARM
    alone = {
        each: sum(mass for (_, *rest), mass in law.items() if tuple(rest) == each) for each in {o[1:] for o in outcomes}
    }
    independent = [weights[first] * alone[tuple(rest)] * SAMPLES for first, *rest in outcomes]
    assert chisquare(counts, np.array(independent) / sum(independent) * SAMPLES).pvalue < ALARM, (
        "they are not independent"
    )


def test_a_second_number_of_a_race_is_not_compared():
    def program(draws):
        with answered_everywhere(draws):
            noise = RNG.exponential(size=3)
            return int(np.argmax(np.array([0.2, 0.3, 0.5]) / noise)), bool(noise[0] < 1), bool(noise[1] < 1)

    with pytest.raises(NeedsValue, match="already decided a race"):
        program_law(program)
