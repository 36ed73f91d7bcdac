"""Orders of clocks, late and cut clocks: each against the law worked out in another way."""

from __future__ import annotations

import itertools
import math
import random
from functools import partial

import numpy as np
import pytest
from scipy.integrate import quad

from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import NeedsValue
from specverify.intercept.symbolic.continuous import Continuous, exponential
from specverify.intercept.symbolic.primitives import answered, applied
from specverify.intercept.symbolic.races import Clock, clock_of, law_of_first, ranked, ranked_from_either_end, winner
from specverify.intercept.symbolic.uniform import Runner, Uniform, agreed, first_of
from specverify.laws.draws import Tape
from specverify.laws.enumeration import program_law
from specverify.laws.paths import paths

# Orders: every question about who rings first, in any order of questions, against all orders at once


def orders(rates):
    """Yield every order of clocks with its probability: the next one by its rate among those that are left."""
    for order in itertools.permutations(range(len(rates))):
        mass, left = 1.0, sum(rates)
        for clock in order:
            mass, left = mass * rates[clock] / left, left - rates[clock]
        yield order, mass


def questions(seed):
    """Return rates, and sets of clocks of which the first is asked for; some are asked for in another unit of time."""
    rng = random.Random(seed)
    rates = [rng.choice([0.5, 1.0, 2.0, 5.0]) for _ in range(rng.choice([3, 4, 5]))]
    sets = [rng.sample(range(len(rates)), rng.randint(1, len(rates))) for _ in range(rng.randint(2, 5))]
    return rates, [(each, rng.choice([1.0, 3.0])) for each in sets]


@pytest.mark.parametrize("seed", range(40))
def test_what_is_known_of_an_order_answers_every_further_question(seed):
    rates, asked = questions(seed)

    def program(draws):
        runners, answers = [Runner(rate) for rate in rates], []
        for each, unit in asked:
            assert agreed([runners[at] for at in each], [rates[at] * unit for at in each])
            answers.append(
                runners.index(first_of([runners[at] for at in each], lambda pmf, _: draws.categorical(pmf, ("a",))))
            )
        return tuple(answers)

    expected = {}
    for order, mass in orders(rates):
        answer = tuple(min(each, key=order.index) for each, _ in asked)
        expected[answer] = expected.get(answer, 0.0) + mass
    assert dict(program_law(program).probabilities) == pytest.approx(expected)


def test_other_weights_are_another_order():
    runners = [Runner(1.0), Runner(2.0), Runner(4.0)]
    first_of(runners, lambda pmf, _: 0)
    assert not agreed(runners, [1.0, 2.0, 5.0])
    assert agreed(runners, [3.0, 6.0, 12.0])
    assert [runner.rate for runner in runners] == [3.0, 6.0, 12.0]


WEIGHTS = [0.5, 0.125, 0.375]


def scores_of(draws):
    """Return weights over exponentials: the larger score is that of the earlier clock."""
    return [applied("divide", weight, exponential(Uniform(draws, ("e", at)))) for at, weight in enumerate(WEIGHTS)]


def sorted_twice(draws):
    """The order from the largest, then from the smallest: the same, and both from what was asked before."""
    scores = scores_of(draws)
    first = winner(scores)
    down = [ranked(scores, rank) for rank in range(3)]
    assert down[0] == first
    assert [ranked(scores, rank, largest=False) for rank in range(3)] == down[::-1]
    return tuple(down)


def in_pairs(draws):
    """Every pair is compared with each other."""
    scores = scores_of(draws)
    beaten = [sum(answered("greater", mine, its) for its in scores if its is not mine) for mine in scores]
    return tuple(sorted(range(3), key=lambda at: -beaten[at]))


def by_the_largest_of_two(draws):
    """The largest of two against the third, then these two."""
    scores = scores_of(draws)
    best = applied("maximum", scores[0], scores[1])
    ahead = answered("greater", best, scores[2])
    pair = [0, 1] if answered("equal", best, scores[0]) else [1, 0]
    if not ahead:
        return (2, *pair)
    return (pair[0], *((2, pair[1]) if answered("less_equal", scores[pair[1]], scores[2]) else (pair[1], 2)))


@pytest.mark.parametrize("program", [sorted_twice, in_pairs, by_the_largest_of_two])
def test_scores_have_the_order_of_their_clocks_however_it_is_asked_for(program):
    assert dict(program_law(program).probabilities) == pytest.approx(dict(orders(WEIGHTS)))


def test_the_largest_is_above_a_part_of_it_where_another_part_is_the_largest():
    def program(draws):
        first, second, _ = scores_of(draws)
        best = applied("maximum", first, second)
        asked = [answered(name, best, first) for name in ("greater", "greater_equal", "less", "less_equal", "equal")]
        return tuple(asked)

    above = (True, True, False, False, False)
    equal = (False, True, False, True, True)
    assert dict(program_law(program).probabilities) == pytest.approx({above: 0.2, equal: 0.8})


def test_of_equal_clocks_the_order_may_be_turned_around():
    """The order of uniforms is asked for from both ends, by logarithms of u and of 1 - u."""

    def program(draws):
        numbers = [Continuous(Uniform(draws, ("u", at))) for at in range(3)]
        smallest = winner([applied("log", number) for number in numbers], largest=False)
        largest = winner([applied("log", applied("subtract", 1.0, number)) for number in numbers], largest=False)
        return smallest, largest

    pairs = dict.fromkeys(itertools.permutations(range(3), 2), 1 / 6)
    assert dict(program_law(program).probabilities) == pytest.approx(pairs)


def test_noise_that_was_compared_under_another_name_is_not_fresh():
    """Two generators of one seed: what is known of the first number of one is known of that of the other."""

    def program(draws):
        with answered_everywhere(draws):
            small = bool(np.random.default_rng(0).random() < 0.5)
            again = np.random.default_rng(0)
            return small, bool(np.log(again.random()) > np.log(again.random()))

    expected = {(True, True): 0.125, (True, False): 0.375, (False, True): 0.375, (False, False): 0.125}
    assert dict(program_law(program).probabilities) == pytest.approx(expected, abs=1e-12)


def exponential_time(rate):
    return random.expovariate(rate)


def time_of_a_uniform(rate):
    return -math.log(1.0 - random.random()) / rate


@pytest.mark.parametrize("time", [exponential_time, time_of_a_uniform])
@pytest.mark.parametrize("weights", [(1, 1, 2), (2, 1, 1), (1, 2, 1, 2), (0.5, 1e-16, 0.5), (1, 1, 1)])
def test_two_of_equal_weight_go_on_to_race_with_others(weights, time):
    """As ``min`` asks: one after the other against the best so far."""

    def program(draws):
        with answered_everywhere(draws):
            times = list(map(time, weights))
            return min(range(len(weights)), key=times.__getitem__)

    expected = {place: weight / sum(weights) for place, weight in enumerate(weights)}
    assert dict(program_law(program).probabilities) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    "second",
    [
        lambda scores: winner(
            [applied("power", score, 2.0) for score in scores[:2]] + [applied("multiply", scores[2], 2.0)]
        ),
        lambda scores: (scores[0].below(1.0), scores[1].below(1.0)),
        lambda scores: winner([scores[0], applied("multiply", scores[0], 2.0)]),
        lambda scores: winner([*scores, 0.5]),
        lambda scores: ranked([*scores, math.nan], 1),
    ],
)
def test_what_an_order_does_not_tell_is_refused(second):
    def program(draws):
        scores = scores_of(draws)
        return winner(scores), second(scores)

    with pytest.raises(NeedsValue):
        program_law(program)


# Late and cut clocks: against integrals


def cut_clocks(seed):
    """Return times of uniforms that were cut, and to which a number was added, and the uniforms."""
    rng = random.Random(seed)
    clocks = []
    for at in range(rng.choice([2, 3])):
        uniform = Uniform(Tape(0), ("u", at))
        low = rng.choice([0.0, 0.0, 0.25])
        uniform.known.low, uniform.known.high = low, rng.choice([1.0, 1.0, low + 0.5])
        number = Continuous(uniform)
        if rng.random() < 0.5:
            number = applied("subtract", 1.0, number)
        number = applied("add", number, rng.choice([0.0, 0.0, 1e-3, 0.25]))
        time = applied("multiply", applied("negative", applied("log", number)), rng.choice([0.5, 1.0, 3.0]))
        clocks.append((applied("add", time, rng.choice([0.0, 0.0, 0.125])), uniform))
    return clocks


@pytest.mark.parametrize("seed", range(30))
def test_the_law_of_cut_and_late_clocks_is_the_integral(seed):
    times = cut_clocks(seed)
    clocks = [clock_of(time) for time, _ in times]

    def later(at, t):
        """Return the probability that a time is above t, from the uniform itself."""
        time, uniform = times[at]
        known = uniform.known
        share = min(max((time._back(t) - known.low) / (known.high - known.low), 0.0), 1.0)
        return 1 - share if time.increasing else share

    def first(at):
        """Integrate over the clock's own uniform."""
        time, uniform = times[at]

        def others(u):
            t = u
            for step in time.steps:
                t = step.of(t)
            return math.prod(later(other, t) for other in range(len(times)) if other != at)

        known = uniform.known
        return quad(others, known.low, known.high, limit=400, epsabs=1e-9)[0] / (known.high - known.low)

    law = law_of_first(clocks, first_of_ties=True)
    assert law == pytest.approx([first(at) for at in range(len(times))], abs=2e-6)


def test_many_cut_clocks_are_refused():
    with pytest.raises(NeedsValue, match="truncated tails"):
        law_of_first([Clock(1.0, offset=-0.1)] * 13, first_of_ties=True)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1])
def test_an_epsilon_inside_the_logarithm_has_its_exact_law(epsilon):
    """Of two equal weights over -log(u + epsilon) and -log(v): integrated by hand over u."""

    def program(draws):
        u, v = (Continuous(Uniform(draws, ("u", at))) for at in range(2))
        noisy = applied("negative", applied("log", applied("add", u, epsilon)))
        plain = applied("negative", applied("log", v))
        return winner([noisy, plain], largest=False)

    wins = 0.5 + epsilon - epsilon**2 / 2  # u + epsilon is above v
    assert program_law(program).probabilities[0] == pytest.approx(wins, abs=1e-12)


def noisy_race(numbers, epsilon):
    """The first of ``numbers`` clocks of the rates 1, 2, 3 and so on, each of -log(u + epsilon)."""

    def program(draws):
        uniforms = [Continuous(Uniform(draws, ("u", at))) for at in range(numbers)]
        logarithms = [applied("log", applied("add", u, epsilon)) for u in uniforms]
        times = [applied("multiply", each, -1 / rate) for rate, each in enumerate(logarithms, 1)]
        return winner(times, largest=False)

    return program


def test_many_clocks_that_are_hardly_cut_have_the_law_of_whole_ones_within_the_difference():
    law = program_law(noisy_race(20, 1e-8))
    assert {at: pytest.approx(mass) for at, mass in law.probabilities.items()} == {
        at: (at + 1) / 210 for at in range(20)
    }
    assert law.rounding.within >= 20 * 1e-8
    with pytest.raises(NeedsValue, match="truncated tails"):
        program_law(noisy_race(20, 1e-5))


@pytest.mark.parametrize("epsilon", [1e-10, 1e-7])
def test_a_number_that_is_hardly_ever_negative_has_a_logarithm(epsilon):
    def program(draws):
        u = Continuous(Uniform(draws, ("u",)))
        time = applied("negative", applied("log", applied("add", u, epsilon)))
        return bool(applied("log", time).below(0.0))

    law = program_law(program)
    assert law.probabilities[True] == pytest.approx(1 - math.exp(-1), abs=2 * epsilon)
    assert law.rounding.within >= epsilon * 0.99


def test_the_last_of_an_ascending_order_is_the_largest_although_plain_numbers_are_equal():
    def program(draws, rank=3):
        first, second = (Continuous(Uniform(draws, ("u", at))) for at in range(2))
        return ranked_from_either_end([0.0, applied("power", first, 1 / 3), 0.0, second], rank, largest=False)

    law = program_law(program).probabilities
    assert {token: pytest.approx(mass) for token, mass in law.items()} == {1: 0.75, 3: 0.25}
    with pytest.raises(NeedsValue, match="equal numbers"):
        program_law(partial(program, rank=0))


def weights_of_paths(program):
    """Return the weights of all draws on each path of ``program``, by the outcome of the path."""

    def run(draws):
        with answered_everywhere(draws), np.errstate(divide="ignore"):
            return program(np.random.default_rng())

    return {path.outcome: [one.weights for one in path.decisions] for path in paths(run)}


def test_the_outcome_of_a_race_is_the_index_in_the_row():
    """An entry that cannot win and the winner keep their indices, with probability 0."""

    def program(rng):
        return tuple(np.argsort(rng.exponential(size=4) / [0.2, 0.0, 0.3, 0.5])[:2].tolist())

    assert weights_of_paths(program)[2, 3][1] == pytest.approx((0.2 / 0.7, 0, 0, 0.5 / 0.7))


def test_the_outcome_of_a_second_race_is_the_index_in_the_row():
    def program(rng):
        noise = rng.exponential(size=3)
        return tuple(int(np.argmin(noise / weights)) for weights in ([0.5, 0.3, 0.2], [0.6, 0.0, 0.4]))

    second = weights_of_paths(program)[1, 2][1]
    assert len(second) == 3
    assert second[1] == 0
