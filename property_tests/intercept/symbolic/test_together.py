"""Comparisons that hang on several uniform numbers: right laws, beside wrong twins, and what is bounded or refused.

The law of an expression must fit a planned sample that the library draws by itself, and a sample of its twin refutes
it. Closed forms and boxes are two ways to one probability; boxes are compared with points drawn in them.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from property_tests.intercept.symbolic.test_algebra import LIBRARY, evaluated
from specverify.intercept.audit import audited
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import NeedsValue
from specverify.intercept.symbolic.steps import EXP, LOG, plus, power, times
from specverify.intercept.symbolic.together import (
    Fact,
    Formula,
    Window,
    _of_one_quantity,
    enclosed,
    probability,
    share,
    windows,
)
from specverify.laws.enumeration import program_law
from specverify.statistics import FitVerdict
from test_support.intercept.drawing_calls import judged, pairs_of

IDIOMS = """
random.random() * random.random() < 0.3 ;; random.random() < 0.3
math.log(random.random()) + math.log(random.random()) < math.log(0.3) ;; math.log(random.random()) < math.log(0.3)
first_and_all(rng.random(3), 0.6, 0.2) ;; [rng.random() < 0.6, np.prod(rng.random(3)) < 0.2]
(np.cumprod(rng.random(3)) < np.array([0.6, 0.3, 0.1])).sum() ;; (rng.random(3) < np.array([0.6, 0.3, 0.1])).sum()
all_and_first(rng.random(2), 0.3, 0.4) ;; [np.prod(rng.random(2)) < 0.3, rng.random() < 0.4]
(random.random() + random.random()) % 1 < 0.3 ;; (random.random() + random.random()) / 2 < 0.3
rng.random(3).sum() < 1 ;; rng.random(3).sum() < 1.25
np.digitize(rng.random(2).sum(), [0.7, 1]) ;; np.digitize(rng.random(2).sum(), [0.4, 1])
share(*rng.exponential(size=2)) < 0.3 ;; share(*(rng.exponential(size=2) * [1, 2])) < 0.3
np.subtract(*rng.gumbel(size=2)) < 0.4 ;; np.subtract(*rng.gumbel(size=2)) < 1.2
(lambda u: u * (1 - u) < 0.1)(random.random()) ;; (lambda u: u * (1 - u) < 0.2)(random.random())
random.random() ** random.random() < 0.6 ;; random.random() ** 2 < 0.6
rng.random() + rng.random() < rng.random() ;; rng.random() + rng.random() < 2 * rng.random()
int(3 * (random.random() + random.random())) ;; int(6 * random.random())
abs(np.subtract(*rng.random(2))) < 0.3 ;; abs(np.subtract(*rng.random(2))) < 0.45
abs(random.random() - 0.4) < 0.2 ;; abs(random.random() - 0.4) < 0.3
[abs(u - 0.5) < 0.2 or u < 0.1 for u in (random.random(),)] ;; [abs(random.random() - 0.5) < 0.2]
(lambda u: u / (1 - u) < 2)(random.random()) ;; random.random() < 0.9
1 / (1 - random.random()) + random.random() < 2 ;; 1 + random.random() < 2
(1 - random.random()) ** -0.5 - random.random() < 0.6 ;; (1 - random.random()) ** -0.5 - random.random() < 0.4
one_and_twice(rng.random(2), 0.6, 0.3, 0.6) ;; one_and_twice(rng.random(2), 0.6, 0.3, 0.5)
"""


OURS = LIBRARY._replace(
    names={
        **LIBRARY.names,
        "share": lambda one, other: one / (one + other),
        "first_and_all": lambda u, first, whole: [bool(u[0] < first), bool(np.prod(u) < whole)],
        "one_and_twice": lambda u, alone, low, high: u[0] > alone and [bool(u[0] - u[1] < end) for end in (low, high)],
        "all_and_first": lambda u, whole, first: [bool(np.prod(u) < whole), bool(u[0] < first)],
    }
)


@pytest.mark.parametrize("pair", pairs_of(IDIOMS))
def test_a_law_of_several_fits_what_is_drawn_and_that_of_its_twin_does_not(pair):
    assert judged(OURS, pair, __file__) == [FitVerdict.FITS, FitVerdict.REFUTED]


def test_one_question_in_two_ways_has_one_answer():
    law = program_law(program_of("[v[0] * v[1] < 0.3, math.log(v[0]) + math.log(v[1]) < math.log(0.3)]"))
    assert all(one == other for one, other in law.probabilities)


def program_of(call):
    def program(draws):
        with answered_everywhere(draws):
            values = {"v": np.random.default_rng().random(5), "math": math, "np": np}
            return tuple(map(bool, eval(compile(call, __file__, "eval"), values)))

    return program


@pytest.mark.parametrize(("call", "why"), [
    ("v[0] * v[1] < v[2] * v[3]", "known to lie between"),
    ("v.sum() < 2", "5 random numbers are compared together"),
    ("(v[0] * v[1]) == 0.5 * np.maximum(v[0], 0.5)", "compared for equality"),
    ("math.floor(-np.log(v[0]) * v[1])", "more values than are followed"),
    ("[v[0] * v[1] < 0.3, np.argmax(v)]", "no race|not a race"),
    ("[np.argmax(v), v[0] * v[1] < 0.3]", "already decided a race"),
    ("np.maximum(v[0], 0.5) * np.maximum(v[1], 0.5) < 0.25 + 1e-9", "whether one of the results is possible"),
    ("[v[0] + v[1] < 0.7, v[0] - 0.7 < -v[1]]", "whether one of the results is possible"),
])  # fmt: skip
def test_what_is_not_known_well_enough_says_why(call, why):
    with pytest.raises(NeedsValue, match=why), answered_everywhere(_Always()):
        eval(compile(call, __file__, "eval"), {"v": np.random.default_rng().random(5), "np": np, "math": math})


class _Always:
    def categorical(self, pmf, _):
        return int(np.argmax(pmf))


def test_a_number_that_decides_together_and_alone_is_told_to_the_audit():
    call = "[v[0] * v[1] < 0.3, v[0] < 0.4]"
    with audited(), pytest.raises(NeedsValue, match="whether that is one decision"):
        program_law(program_of(call))
    with audited() as found:
        program_law(program_of("[v[0] * v[1] < 0.3, v[2] < 0.4]"))
    assert found == []


def test_what_cannot_be_valued_is_still_refused():
    for call in ("float(u * v[0])", "{u * v[0]}", "round(u + v[0])"):
        with pytest.raises(NeedsValue):
            evaluated(call)


# Closed forms and boxes


def uniform(place, *steps):
    return Formula("uniform", (place,), steps)


def product_of(*places):
    return (
        uniform(places[0]) if len(places) == 1 else Formula("multiply", (product_of(*places[:-1]), uniform(places[-1])))
    )


LEVEL = st.floats(0.02, 0.98)


@given(LEVEL, st.integers(1, 5))
def test_a_product_has_the_law_that_it_is_known_to_have(level, number):
    found = windows([(0.0, 1.0)] * number, [Fact(product_of(*range(number)), level)])
    length = -math.log(level)
    assert float(probability(found)) == pytest.approx(
        level * sum(length**k / math.factorial(k) for k in range(number)), rel=1e-12
    )


@settings(max_examples=5)
@given(st.lists(st.tuples(LEVEL, st.booleans()), min_size=2, max_size=2), LEVEL)
def test_closed_forms_lie_between_the_bounds_of_boxes(known, level):
    ends = [(0.0, 1.0)] * len(known)
    facts = [Fact(product_of(*range(n + 1)), bound, true=true) for n, (bound, true) in enumerate(known[:-1])]
    asked = Fact(product_of(*range(len(known))), level)
    whole = probability(windows(ends, facts))
    if whole > 1e-3:
        low, high = share(tuple(ends), tuple(facts), asked).chance
        assert low - 1e-12 <= float(probability(windows(ends, [*facts, asked])) / whole) <= high + 1e-12
        assert high - low < 1e-3


@given(st.lists(st.tuples(LEVEL, LEVEL), min_size=1, max_size=4))
def test_windows_split_in_two_add_up(pairs):
    levels = [sorted(-math.log(each) for each in pair) for pair in pairs]
    whole = tuple(Window(1, low, high) for low, high in levels)
    low, high = levels[0]
    middle = (low + high) / 2
    parts = [(Window(1, *ends), *whole[1:]) for ends in pairwise((low, middle, high))]
    assert float(sum(map(probability, parts))) == pytest.approx(float(probability(whole)), abs=1e-14)


REST = (times(-1.0), plus(1.0))
STEPS = st.sampled_from([(), (plus(-0.25),), (times(-2.0),), (LOG, times(-1.0)), (EXP,), (power(0.5),), (power(-1.0),),
                         (*REST, power(-1.0)), (*REST, power(0.5)), (*REST, LOG)])  # fmt: skip
LEAF = st.builds(lambda place, steps: uniform(place, *steps), st.integers(0, 2), STEPS)
NAME = st.sampled_from(["add", "multiply", "maximum"])
FORMULA = st.recursive(
    LEAF, lambda of: st.tuples(NAME, st.tuples(of, of)).map(lambda made: Formula(*made)), max_leaves=4
)


def value_at(formula, at):
    """Return the value of a formula where its uniform numbers are ``at``."""
    if formula.name == "uniform":
        value = at[formula.operands[0]]
    else:
        one, other = (value_at(each, at) for each in formula.operands)
        value = {"add": one + other, "multiply": one * other, "maximum": max(one, other)}[formula.name]
    for step in formula.steps:
        value = step.of(value)
    return value


END = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0.01, 0.99))
SIDE = st.tuples(END, END).map(sorted)
BOX = st.tuples(*[SIDE] * 3)


@given(FORMULA, BOX, st.lists(st.floats(0.01, 0.99), min_size=6, max_size=6))
def test_enclosures_enclose_values_and_slopes(formula, box, places):
    low, high = np.array(box).T
    ends = enclosed(formula, low[:, None], high[:, None])
    one, other = (low + np.array(part) * (high - low) for part in (places[:3], places[3:]))
    assume(not {0.0, 1.0} & {*one, *other})
    least, most = (float(end[0]) for end in ends.value)
    values = value_at(formula, one), value_at(formula, other)
    assert all(least <= value <= most for value in values)
    moved = other - one
    down, up = (end[:, 0] for end in ends.slopes)
    products = [np.where((end == 0) | (moved == 0), 0.0, end * np.where(moved == 0, 1.0, moved)) for end in (down, up)]
    bounds = np.minimum(*products).sum(), np.maximum(*products).sum()
    slack = 1e-12 * (1 + max(map(abs, values)))
    assert bounds[0] - slack <= values[1] - values[0] <= bounds[1] + slack


@settings(max_examples=8)
@given(FORMULA, st.floats(-1, 2), st.integers(0, 2**20))
def test_the_bounds_of_boxes_hold_what_points_show(formula, level, seed):
    """Of 1000 points a share that is outside by 0.1 is seen with probability 1 - 5e-9, by Hoeffding."""
    points = np.random.default_rng(seed).random((1000, 3))
    seen = np.mean([value_at(formula, at) < level for at in points])
    low, high = share(((0.0, 1.0),) * 3, (), Fact(formula, level), 2000).chance
    assert low - 0.1 <= seen <= high + 0.1


@settings(max_examples=8)
@given(
    st.tuples(SIDE, SIDE, SIDE), FORMULA, st.lists(st.floats(-1, 2), min_size=2, max_size=2, unique=True).map(sorted)
)
def test_questions_of_one_quantity_have_the_shares_of_boxes(box, formula, levels):
    """What is known of a quantity from one level on, of numbers that are narrowed by themselves."""
    assume(all(start < end for start, end in box))
    ends, facts, asked = tuple(map(tuple, box)), (Fact(formula, levels[0], true=False),), Fact(formula, levels[1])
    for mine, its in zip(_of_one_quantity(ends, facts, asked), share(ends, facts, asked, 1000), strict=True):
        assert max(mine[0], its[0]) <= min(mine[1], its[1]) + 1e-9
