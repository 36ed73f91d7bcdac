"""Whole parts of random numbers, and whole numbers of many outcomes: each law against one worked out in another way."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from reference import Sampled
from specverify.intercept.distributions import Boundary
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import NeedsValue, gifts_kept
from specverify.intercept.symbolic.algebra import narrowed
from specverify.intercept.symbolic.continuous import Continuous
from specverify.intercept.symbolic.primitives import answered, applied
from specverify.intercept.symbolic.uniform import Uniform
from specverify.laws.draws import Tape
from specverify.laws.enumeration import program_law

# Whole parts: against a fine grid of the uniform


def _clamped(value):
    return applied("clip", applied("subtract", applied("multiply", value, 6.0), 2.0), -1.0, 2.0)


STEPPED = {
    "floor": (np.floor, "floor"),
    "ceil": (np.ceil, "ceil"),
    "trunc": (np.trunc, "trunc"),
    "rint": (np.rint, "rint"),
    "sign": (np.sign, "sign"),
}
IMAGES = {
    "scaled": (lambda u: 5 * u - 2.3, lambda v: applied("subtract", applied("multiply", v, 5.0), 2.3)),
    "turned": (lambda u: 2.5 - 4 * u, lambda v: applied("subtract", 2.5, applied("multiply", v, 4.0))),
    "clamped": (lambda u: np.clip(6 * u - 2, -1, 2), _clamped),
    "root": (lambda u: 3 * np.sqrt(u), lambda v: applied("multiply", applied("sqrt", v), 3.0)),
}  # fmt: skip
GRID = (np.arange(200_000) + 0.5) / 200_000


@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.parametrize("part", STEPPED)
def test_a_whole_part_has_the_law_of_a_fine_grid(image, part):
    of_numbers, of_unknown = IMAGES[image]
    whole, name = STEPPED[part]

    def program(draws):
        return applied(name, of_unknown(Continuous(Uniform(draws, ("u",))))) + 0.0

    values, counts = np.unique(whole(of_numbers(GRID)) + 0.0, return_counts=True)
    expected = {float(value): count / len(GRID) for value, count in zip(values, counts, strict=True)}
    assert dict(program_law(program).probabilities) == pytest.approx(expected, abs=3e-5)


@pytest.mark.parametrize("bound", [0.5, 0.75, 0.9997558593750001, 0.33, -0.5, -1.25, 1.0, -1.0])
@pytest.mark.parametrize("image", ["scaled", "turned", "root"])
def test_a_number_that_is_rounded_to_16_bits_is_below_a_bound_as_numpy_rounds_it(image, bound):
    """It is at a float of 16 bits with a probability, and equality with one counts."""
    of_numbers, of_unknown = IMAGES[image]
    grid = of_numbers(GRID).astype(np.float16).astype(np.float64)
    for name, compare in (("less", np.less), ("less_equal", np.less_equal)):

        def program(draws, name=name):
            return answered(name, narrowed(of_unknown(Continuous(Uniform(draws, ("u",)))), "float16"), bound)

        law = program_law(program).probabilities
        assert law.get(True, 0.0) == pytest.approx(compare(grid, bound).mean(), abs=2e-5)


def _to_bits(values, bits):
    fractions, exponents = np.frexp(values)
    return np.ldexp(np.rint(np.ldexp(fractions, bits)), exponents - bits)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shift", [0.0, 0.25, 8.0, 8.25])
def test_what_was_rounded_before_goes_to_the_even_one_where_it_is_halfway(turned, shift):
    """Beside 8 every second number of 8 bits is halfway between two floats of 16, and beside 0.25 some are equal."""
    sign = -1.0 if turned else 1.0
    grid = _to_bits(shift + sign * _to_bits(GRID, 8), 11)
    bounds = np.unique(grid)[:: max(1, len(np.unique(grid)) // 12)]
    for bound, (name, compare) in product(bounds, (("less", np.less), ("less_equal", np.less_equal))):

        def program(draws, name=name, bound=bound):
            coarse = narrowed(Continuous(Uniform(draws, ("u",))), "bfloat16")
            moved = applied("add", applied("multiply", coarse, sign), shift)
            return answered(name, narrowed(moved, "float16"), float(bound))

        law = program_law(program).probabilities
        assert law.get(True, 0.0) == pytest.approx(compare(grid, bound).mean(), abs=2e-5)


def _written(rng):
    row = np.empty(1, np.float16)
    row[:] = rng.random(1)
    return row[0]


ROUNDED = {
    "astype": lambda rng: rng.random(1).astype(np.float16)[0],
    "asarray": lambda rng: np.asarray([rng.random()], dtype=np.float16)[0],
    "array": lambda rng: np.array(rng.random(1), dtype=np.float16)[0],
    "an array of float16 that is written to": _written,
}


@pytest.mark.parametrize("way", ROUNDED)
def test_a_uniform_that_is_put_into_16_bits_is_1_as_often_as_it_rounds_to_1(way):
    rng = np.random.default_rng(0)

    def program(draws):
        with answered_everywhere(draws):
            return bool(ROUNDED[way](rng) >= 1.0)

    assert dict(program_law(program).probabilities) == pytest.approx({False: 1 - 2.0**-12, True: 2.0**-12}, rel=1e-6)


MET = {
    "a scalar that is multiplied": lambda: np.float16(1) * random.random() < 0.3,
    "a scalar that is multiplied from the right": lambda: random.random() * np.float16(1) < 0.3,
    "a function of NumPy": lambda: np.add(random.random(), np.float16(0)) < 0.3,
    "a comparison": lambda: random.random() < np.float16(0.3),
    "an array": lambda: (np.ones(1, np.float16) * random.random())[0] < 0.3,
}


@pytest.mark.parametrize("way", MET)
def test_a_number_that_meets_16_bits_may_be_rounded_to_them_and_the_law_says_so(way):
    def program(draws):
        with answered_everywhere(draws):
            return bool(MET[way]())

    assert program_law(program).rounding.within >= 2.0**-11
    law = program_law(lambda draws: bool(_answered(draws, lambda: np.float32(1) * random.random() < 0.3)))
    assert law.rounding.within == 0


def _answered(draws, draw):
    with answered_everywhere(draws):
        return draw()


@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_half_of_a_whole_number_is_rounded_to_the_even_one_and_refused_where_it_has_a_probability(name):
    def program(draws):
        return applied("rint", applied(name, Continuous(Uniform(draws, ("u",))), 0.5))

    assert np.rint(0.5) == 0.0
    with pytest.raises(NeedsValue, match="half of a whole"):
        program_law(program)


@pytest.mark.parametrize("name", ["remainder", "fmod"])
@pytest.mark.parametrize("bound", [0.1, 0.35, 0.6])
def test_what_is_left_of_a_division_goes_on_as_a_random_number(name, bound):
    def program(draws):
        value = applied("subtract", applied("multiply", Continuous(Uniform(draws, ("u",))), 3.0), 1.2)
        return answered("less", applied(name, value, 0.7), bound)

    expected = float((getattr(np, name)(3 * GRID - 1.2, 0.7) < bound).mean())
    assert program_law(program).probabilities[True] == pytest.approx(expected, abs=3e-5)


MANY = 1_000_003


@pytest.mark.parametrize(
    "question",
    [
        lambda n: n < 1000,
        lambda n: n <= 1000,
        lambda n: n - 5 > 1000.5,
        lambda n: -n >= -1000,
        lambda n: n / MANY < 0.25,
        lambda n: (n + 1) * 2.0**-20 <= 0.5,
        lambda n: n // 7 < 143,
        lambda n: n == 17,
        lambda n: n >> 4 >= 62,
    ],
)
def test_one_of_many_whole_numbers_is_compared_as_what_it_is(question):
    def program(draws):
        with answered_everywhere(draws):
            return bool(question(random.randrange(MANY)))

    expected = sum(bool(question(n)) for n in range(MANY)) / MANY
    assert program_law(program).probabilities.get(True, 0.0) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    "place",
    [
        lambda n: n // 2**40,
        lambda n: n >> 40,
        lambda n: divmod(n, 2**40)[0],
        lambda n: 2 - n // 2**40,
        lambda n: -(n // 2**40) * 2 + 4 >> 1,
    ],
)
def test_a_part_of_a_whole_number_is_a_place_as_it_is_of_an_int(place):
    def program(draws):
        with answered_everywhere(draws):
            number = place(random.randrange(3 * 2**40))
            return "abc"[number], int(np.arange(3)[number])

    expected = {("a", 0): 1 / 3, ("b", 1): 1 / 3, ("c", 2): 1 / 3}
    assert dict(program_law(program).probabilities) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("size", [None, 2])
def test_a_number_of_trials_that_has_a_value_is_a_place(size):
    with answered_everywhere(Sampled(0), Boundary(0.75)):
        number = np.random.default_rng(0).geometric(0.5, size=size)
        assert isinstance(np.arange(9)[number] + 0, np.integer if size is None else np.ndarray)


# Seeds


def test_who_needs_the_number_itself_is_given_one_that_is_another_in_other_runs():
    given = set()
    for _ in range(12):
        with answered_everywhere(Tape(0)), gifts_kept() as gifts:
            number = random.randrange(2**40)
            given.add(int(number))
            assert number == int(number)
            assert not number < int(number)
            assert any("test_continuous.py" in gift for gift in gifts)
    assert len(given) > 6


class FirstOf:
    """Answers every question with the first outcome."""

    def categorical(self, pmf, site):  # noqa: ARG002 - as interpreters have it
        """Return the first outcome."""
        return 0


def test_it_stays_within_what_is_known_of_it():
    for tape in range(8):
        with answered_everywhere(Tape(tape)):
            number = random.randrange(2**40)
            small = number < 2**30
            assert (int(number) < 2**30) is small


@pytest.mark.parametrize(
    "call",
    [
        "int(random.randrange(300_000))",
        "[0] * random.randrange(50_000)",
        "float(random.randrange(2**40))",
        "int(np.minimum(random.randrange(2**40), 5))",
        "int(random.random() ** 20 * 2**40)",
        "int(np.random.default_rng(0).geometric(0.5))",
        "[n for n in [random.randrange(2**40)] if n < 50_000 and int(n)]",
    ],
)
def test_a_number_that_may_be_a_token_is_nobodys_seed(call):
    with pytest.raises(NeedsValue), answered_everywhere(FirstOf()):
        eval(call)
