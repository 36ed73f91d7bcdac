"""Random numbers without a value, computed with before they are compared: right idioms by their law, and wrong twins.

Every idiom stands beside a twin that looks like it and has another law. The exact law of the idiom must fit a planned
sample that the library draws by itself, and the sample of the twin must refute it.
"""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import NeedsValue
from specverify.intercept.symbolic.continuous import Continuous
from specverify.intercept.symbolic.primitives import applied
from specverify.intercept.symbolic.races import NEVER, Clock
from specverify.intercept.symbolic.races import law_of_first as _law
from specverify.intercept.symbolic.uniform import Uniform
from specverify.laws.draws import Tape
from specverify.laws.enumeration import program_law
from specverify.statistics import FitVerdict
from test_support.intercept.drawing_calls import LINES, cases, judged, pairs_of
from test_support.intercept.numpy_and_random import NUMPY, RANDOM

LIBRARY = NUMPY._replace(names={**NUMPY.names, "math": math, "random": random})
IDIOMS = """
rng.random() ** 2 < 0.25 ;; rng.random() < 0.25
np.sqrt(rng.random()) < 0.5 ;; rng.random() < 0.5
np.square(rng.random(2))[1] < 0.25 ;; np.sqrt(rng.random(2))[1] < 0.25
(lambda u: u * u < 0.25)(random.random()) ;; random.random() * random.random() < 0.25
1 / (1 - rng.random()) > 2 ;; 1 / (1 - rng.random()) > 4
-1 / (rng.random() - 1) > 2 ;; -1 / rng.random() < -4
abs(rng.random() - 1) < 0.3 ;; abs(-rng.random() - 1) < 1.7
(rng.random() - 1) ** 2 < 0.25 ;; (rng.random() - 1) ** 2 < 0.5
(rng.random() - 1) ** 3 < -0.001 ;; (rng.random() - 1) ** 3 > -0.001
(rng.random(2) - 1)[1] ** -2 < 4 ;; (1 - rng.random(2))[1] ** -2 < 2
2 ** -rng.exponential() < 0.5 ;; 2 ** -(2 * rng.exponential()) < 0.5
math.log(random.random()) < math.log(0.3) ;; math.log10(random.random()) < math.log(0.3)
math.log(random.random(), 2) < -1 ;; math.log(random.random(), 10) < -1
math.exp(-rng.exponential()) < 0.3 ;; math.exp(-rng.exponential() / 2) < 0.3
math.pow(random.random(), 3) < 0.125 ;; math.sqrt(random.random()) < 0.125
random.random() if False else min(1.0, 2 * random.random()) < 0.5 ;; max(0.5, 2 * random.random()) < 0.5
(lambda u: u != 0 and not math.isnan(u) and u < 0.3)(random.random()) ;; random.random() < 0.6
np.isfinite(rng.random(1))[0] and bool(rng.random() < 0.3) ;; np.isinf(rng.random(1))[0] or bool(rng.random() < 0.6)
np.clip(rng.random(2), 0.25, 0.75)[0] < 0.5 ;; np.clip(rng.random(2), 0.6, 0.75)[0] < 0.5
np.maximum(rng.random(2), 0.25)[1] < 0.5 ;; np.minimum(rng.random(2), 0.25)[1] < 0.5
np.searchsorted(np.cumsum(P), np.maximum(rng.random(2), 0.55))[0] ;; np.searchsorted(np.cumsum(P), rng.random(2))[0]
np.searchsorted(np.cumsum(P), 1 - np.minimum(rng.random(2), 0.45))[0] ;; np.searchsorted(np.cumsum(P), rng.random(2))[0]
np.argsort(P / rng.exponential(size=3))[2] ;; np.argsort(1 / P / rng.exponential(size=3))[2]
np.argsort(P / rng.exponential(size=3))[0] ;; np.argsort(1 / P / rng.exponential(size=3))[0]
np.argsort(np.log(P) + rng.gumbel(size=3))[::-1][1] ;; np.argsort(rng.gumbel(size=3) - np.log(P))[::-1][1]
np.argmax(rng.random(3) ** (1 / P)) ;; np.argmax(rng.random(3) ** P)
np.argmax(rng.random(3) * P) ;; np.argmax(P / rng.exponential(size=3))
np.argmax(P * (1 / rng.exponential(size=3))) ;; np.argmax(1 / P / rng.exponential(size=3))
np.argmax(P**2 / rng.exponential(size=3) ** 2) ;; np.argmax(P**2 / rng.exponential(size=3))
np.argmax(np.sqrt(P / rng.exponential(size=3))) ;; np.argmax(np.sqrt(1 / rng.exponential(size=3)))
np.argmin(np.log(rng.exponential(size=3)) - np.log(P)) ;; np.argmin(np.log(rng.exponential(size=3)) + np.log(P))
np.argmax(P / np.maximum(rng.exponential(size=3), 1.0)) ;; np.argmax(P / rng.exponential(size=3))
np.argmin(np.maximum(rng.exponential(size=3), 1.0) / P) ;; np.argmin(rng.exponential(size=3) / P)
np.argmax(P / np.minimum(rng.exponential(size=3), 0.25)) ;; np.argmax(P / rng.exponential(size=3))
np.argmax(P / (rng.exponential(size=3) + 1.0)) ;; np.argmax(P / rng.exponential(size=3))
np.argmax(np.minimum(P / rng.exponential(size=3), 0.25)) ;; np.argmax(P / rng.exponential(size=3))
np.argmax(np.log(P) - np.log(-np.log(np.clip(rng.random(3), 0.25, 0.5)))) ;; np.argmax(np.log(P) + rng.gumbel(size=3))
math.ldexp(random.getrandbits(53), -53) < 0.3 ;; math.ldexp(random.getrandbits(53), -52) < 0.3
np.ldexp(rng.random(2), [0, 1])[1] < 0.5 ;; np.ldexp(rng.random(2), [1, 0])[1] < 0.5
np.signbit(np.round(rng.random() - 0.5)) ;; np.signbit(np.round(rng.random()))
np.signbit(np.trunc(rng.random() - 0.25)) ;; np.signbit(np.trunc(rng.random() - 0.75))
np.argmax(np.append(np.log(P[:2]) + rng.gumbel(size=2), -1e9)) ;; np.argmax(np.log(P[[0, 2]]) + rng.gumbel(size=2))
np.argmax(np.where(P > 0.2, P / rng.exponential(size=3), 0.0)) ;; np.argmax(P[[0, 2]] / rng.exponential(size=2))
(lambda u: (u.__imul__(2), u.__isub__(1), bool(u[1] < 0.5))[2])(rng.random(2)) ;; rng.random(2)[1] < 0.5
"""
PAIRS = pairs_of(IDIOMS)


@pytest.mark.parametrize("pair", PAIRS, ids=[right for right, _ in PAIRS])
def test_an_idiom_has_its_exact_law_and_its_twin_is_refuted(pair):
    assert judged(LIBRARY, pair, "test_algebra.py") == [FitVerdict.FITS, FitVerdict.REFUTED]


def test_all_samples_together_keep_to_their_share_of_false_alarms():
    others = sum(1 for library in (NUMPY, RANDOM) for _ in cases(library, "answered"))
    assert others + len(PAIRS) < LINES / 2


# Chains of operations: whatever is not refused is what NumPy computes

UNARY = ("negative", "reciprocal", "absolute", "sqrt", "square", "log", "log1p", "exp", "expm1", "log2", "exp2")
BINARY = ("add", "subtract", "multiply", "divide", "power", "maximum", "minimum")
NUMBERS = st.sampled_from([-3.0, -1.0, -0.25, 0.5, 1.0, 2.0, 4.0])
OPERATION = st.one_of(
    st.tuples(st.sampled_from(UNARY)),
    st.tuples(st.sampled_from(BINARY), NUMBERS),
    st.tuples(NUMBERS, st.sampled_from(("subtract", "divide"))),
)
PLACES = np.linspace(0.03, 0.97, 15)
LARGE = 1e9


def computed(operation, value):
    """Apply an operation, written in the order of its operands, to a number or a random number."""
    *before, name = operation if isinstance(operation[-1], str) else (operation[0],)
    after = () if isinstance(operation[-1], str) else operation[1:]
    return applied(name, *before, value, *after)


def value_at(value, place):
    """Return the value of a random number where its uniform is ``place``."""
    number = place
    for step in value.steps:
        number = step.of(number)
    return min(max(number, value.low), value.high)


def applied_in_turn(operations):
    """Return a random number and what NumPy computes at ``PLACES``, after those operations that are not refused.

    The operations end before one that gives a number of more than ``LARGE``, whose floats soon overflow.
    """
    value, numbers = Continuous(Uniform(Tape(0), ("u",))), list(PLACES)
    for operation in operations:
        try:
            found = computed(operation, value)
        except NeedsValue:
            continue
        if isinstance(found, Continuous):
            after = [computed(operation, number) for number in numbers]
            if max(map(abs, after)) > LARGE:
                break
            value, numbers = found, after
    return value, numbers


@given(st.lists(OPERATION, min_size=2, max_size=8), NUMBERS)
def test_what_is_not_refused_is_what_numpy_computes(operations, bound):
    check_chain(operations, bound)


@pytest.mark.parametrize("first", [*[(name,) for name in UNARY], *itertools.product(BINARY, (-1.0, 0.5, 2.0))])
def test_every_operation_before_every_other_one(first):
    seconds = [*[(name,) for name in UNARY], *itertools.product(BINARY, (-1.0, 0.5, 2.0))]
    for second, bound in itertools.product(seconds, (-1.0, 0.75)):
        check_chain([first, second], bound)


def check_chain(operations, bound):
    value, numbers = applied_in_turn(operations)
    assert [value_at(value, place) for place in PLACES] == pytest.approx(numbers, rel=1e-6, abs=1e-6)
    low, high = value.ends()
    assert low - 1e-6 <= min(numbers) <= max(numbers) <= high + 1e-6
    if any(math.isclose(bound, end) for end in (value.low, value.high)):
        return
    try:
        back = value._back(bound)
    except NeedsValue:
        return
    for place, number in zip(PLACES, numbers, strict=True):
        if abs(number - bound) > 1e-5 * max(1, abs(bound)):
            assert ((place < back) == value.increasing) == (number < bound)


@pytest.mark.parametrize(
    "operations",
    [
        [("reciprocal",), ("exp",), ("exp",), ("log2",), ("reciprocal",)],
        [("reciprocal",), ("add", 4.0), ("square",), ("exp",), ("negative",), ("exp",)],
    ],
    ids=["floats overflow", "a comparison is refused"],
)
def test_a_chain_that_was_found_at_random_is_what_numpy_computes(operations):
    check_chain(operations, -3.0)


def test_ways_to_write_one_function_are_one_chain():
    u = Continuous(Uniform(Tape(0), ("u",)))
    clock = applied("negative", applied("log", u))
    ways = [
        applied("divide", 0.25, clock),
        applied("multiply", applied("reciprocal", clock), 0.25),
        applied("reciprocal", applied("multiply", clock, 4.0)),
        applied("exp", applied("subtract", math.log(0.25), applied("log", clock))),
        applied("power", applied("multiply", clock, 4.0), -1),
    ]
    assert len({tuple(step.name for step in way.steps) for way in ways}) == 1
    assert [way.steps[-1].number for way in ways] == pytest.approx([0.25] * 5)


# Refusals: what is not a function of one uniform that keeps its order, and values that have a probability

REFUSED = """
u * (1 - u) == 0 ;; u / u < 1 ;; math.log(u - 0.5) ;; 1 / (u - 0.5) ;; (u - 0.5) ** 2
math.sqrt(u - 0.5) ;; np.sin(u) ;; float(u) ;; (-2) ** u ;; (2 * u) ** math.inf
np.log(np.minimum(u, 1 - 1e-6)) < -1e-6 ;; np.maximum(u, 0.1) == 0.1 ;; np.maximum(u, 0.25) < 0.25 + 1e-8
np.minimum(u, 0.3) >= 0.3 ;; (u * 1e-200) * 1e-200 ;; (u - 0.5) * 0
u.hex() ;; {u: 1} ;; "%.2f" % u ;; str(u) ;; np.argmax(np.log(P) * v)
np.argmax(np.append(P / -np.log(v), 0.5)) ;; np.floor(u * 1e5) < 1 / 3 * 1e5 * 3e-5 + 1e-9
[np.argmax(P / v), np.argmax(v)] ;; (np.argmax(v), v[0] < 0.5, v[1] < 0.5)
1 / np.minimum(0.0, u - 0.5) < -5 ;; np.maximum(u - 0.5, 0) ** -1 > 3 ;; np.inf * np.maximum(u - 0.5, 0) > 1
np.signbit(-np.maximum(u - 0.5, 0)) ;; np.copysign(1, -np.maximum(u - 0.5, 0)) ;; np.minimum(2 * u, 1) ** np.inf < 1
np.uint8(200) + np.random.default_rng().integers(0, 100, dtype=np.uint8) < 44 ;; np.angle(u - 0.5)
np.random.default_rng().integers(0, 2**62) * 2 * 4 < 2**60
np.floor(1e5 * u) % 7 ;; np.maximum(u, 0.5) < np.maximum(v[0], 0.5)
"""
REFUSED_CALLS = [call.strip() for call in REFUSED.replace("\n", ";;").split(";;") if call.strip()]


@pytest.mark.parametrize("call", REFUSED_CALLS)
def test_what_is_not_understood_is_refused(call):
    with pytest.raises(NeedsValue, match=r"test_algebra\.py:\d+"):
        evaluated(call)


@pytest.mark.parametrize("call", ["math.sin(u)", "math.fsum([u, 0.3])", "np.hypot(u, 0.3)", "math.isclose(u, 0.3)"])
def test_a_refusal_names_the_function(call):
    with pytest.raises(NeedsValue, match=rf"^{call.partition('(')[0]} at test_algebra\.py:\d+: "):
        evaluated(call)


def evaluated(call):
    with answered_everywhere(Tape(1)):
        names = {"u": random.random(), "v": np.random.default_rng().random(3), "P": LIBRARY.names["P"]}
        return eval(compile(call, __file__, "eval"), names | {"math": math, "np": np})


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (lambda u: u * math.nan < 1, False),
        (lambda u: u + math.inf, math.inf),
        (lambda u: 1 / (0 * u), None),
        (lambda u: np.maximum(u, 2), 2),
        (lambda u: np.minimum(u, 2) < 1, True),
        (lambda u: u**0, 1.0),
        (lambda u: u == 0.25, False),
        (lambda u: u != u, False),  # noqa: PLR0124 - how NaN is asked for
        (lambda u: math.isfinite(math.log(u)), True),
        (lambda u: np.maximum(u, 1e-9) < 1e-9, False),
    ],
)
def test_where_no_chance_is_left_nothing_is_drawn(question, answer):
    def program(draws):
        with answered_everywhere(draws):
            try:
                return question(random.random())
            except ZeroDivisionError:
                return None

    law = program_law(program)
    assert dict(law.probabilities) == {answer: 1}
    assert law.decisions == 0


def test_the_functions_of_math_are_those_of_python_outside_a_block():
    before = math.log
    with answered_everywhere(Tape(0)):
        assert math.log(math.e) == 1.0
    assert math.log is before


# Races by hand


def test_of_two_clocks_that_may_ring_at_once_the_first_of_the_row_wins():
    at_once = 1 - math.exp(-0.5)
    pmf = _law([Clock(1.0, 0.5, at_once), Clock(1.0, 0.5, at_once)], first_of_ties=True)
    both_late = (1 - at_once) ** 2
    assert pmf == pytest.approx([at_once + both_late / 2, (1 - at_once) * at_once + both_late / 2])


def test_a_clock_that_starts_later_loses_what_rings_before():
    """The first, of rate 2, rings before 1/4 with probability 1 - exp(-1/2); from then on it has two thirds."""
    pmf = _law([Clock(2.0), Clock(1.0, 0.25), NEVER], first_of_ties=True)
    early = 1 - math.exp(-0.5)
    assert pmf == pytest.approx([early + (1 - early) * 2 / 3, (1 - early) / 3, 0.0])


def test_a_clock_that_rings_at_the_latest_wins_what_is_left():
    pmf = _law([Clock(1.0), Clock(1.0, 0.0, 0.0, 0.25)], first_of_ties=True)
    left = math.exp(-0.5)
    assert pmf == pytest.approx([(1 - left) / 2, (1 - left) / 2 + left])


@pytest.mark.parametrize("second", [0.5, 0.5 * (1 + 1e-9)])
def test_ties_are_refused_where_nothing_says_who_is_first_or_whether_they_are_ties(second):
    clocks = [Clock(1.0, 0.5, 0.25), Clock(1.0, second, 0.25)]
    with pytest.raises(NeedsValue, match="equal at the bound"):
        _law(clocks, first_of_ties=False)
    assert sum(_law([*clocks[:1], Clock(1.0, 0.5)], first_of_ties=False)) == pytest.approx(1)
