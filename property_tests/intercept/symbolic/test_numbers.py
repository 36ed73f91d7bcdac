"""Random numbers beside the numbers of the standard library: what is asked of a float may be asked of one."""

from __future__ import annotations

import copy
import json
import math
import operator
import pickle
import random
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import scipy.special

from specverify.intercept.refusals import NeedsValue
from test_support.intercept.answered_laws import law_of


@pytest.mark.parametrize("relation", [operator.lt, operator.le, operator.gt, operator.ge])
@pytest.mark.parametrize("number", [Decimal("0.3"), Fraction(3, 10)])
def test_a_random_number_is_compared_with_a_decimal_as_a_float_is(relation, number):
    below = relation(0.0, number)
    assert law_of(lambda: relation(random.random(), number)) == pytest.approx({below: 0.3, not below: 0.7})
    assert law_of(lambda: relation(number, random.random())) == pytest.approx({below: 0.7, not below: 0.3})


def test_a_whole_number_is_compared_with_a_decimal():
    assert law_of(lambda: random.getrandbits(53) < Decimal(2**51)) == pytest.approx({True: 0.25, False: 0.75})


def test_nothing_is_computed_of_a_float_and_a_decimal():
    with pytest.raises(TypeError):
        0.5 * Decimal("0.3")
    with pytest.raises(NeedsValue, match="Decimal"):
        law_of(lambda: random.random() * Decimal("0.3"))


RNG = np.random.default_rng()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_of_a_random_number_is_the_same_number(copied):
    def call():
        kept = {"u": random.random(), "row": RNG.random(2)}
        again = copied(kept)
        return again["u"] < 0.3, kept["u"] < 0.3, bool(again["row"][1] < 0.5), bool(kept["row"][1] < 0.5)

    halves = {(low, low, half, half): (0.3 if low else 0.7) / 2 for low in (True, False) for half in (True, False)}
    assert law_of(call) == pytest.approx(halves)


@pytest.mark.parametrize(
    "written",
    [
        lambda row: row.tobytes(),
        bytes,
        lambda row: row.byteswap(),
        lambda row: row.data,
        lambda row: row.ctypes,
        lambda row: row.view(np.int64),
        lambda row: memoryview(row)[0],
        pickle.dumps,
        lambda row: pickle.dumps(row[0]),
        lambda row: json.dumps({"u": row[0]}),
        lambda row: np.ma.array(row, mask=[True, False]).min(),
        lambda row: np.add.at(np.zeros(2), [0, 0], row),
    ],
)
def test_what_stands_in_the_memory_of_random_numbers_is_refused(written):
    with pytest.raises(NeedsValue):
        law_of(lambda: bool(written(RNG.random(2))))


def test_whole_parts_that_a_type_does_not_hold_are_what_numpy_makes_of_them():
    parts = np.arange(0.5, 400.0)
    expected = {int(value): float((parts.astype(np.uint8) == value).mean()) for value in parts.astype(np.uint8)}
    assert law_of(lambda: int((RNG.random(1) * 400).astype(np.uint8)[0])) == pytest.approx(expected)


def test_sums_between_places_are_sums_of_random_numbers():
    assert law_of(lambda: bool(np.add.reduceat(RNG.random(4), [0, 2])[1] < 1)) == pytest.approx({True: 0.5, False: 0.5})


def test_the_functions_of_scipy_that_are_those_of_a_coin():
    def coin():
        return scipy.special.logit(random.random()) < scipy.special.logit(0.3), scipy.special.expit(RNG.random()) < 0.6

    below = math.log(0.6 / 0.4)
    laws = {(a, b): (0.3 if a else 0.7) * (below if b else 1 - below) for a in (True, False) for b in (True, False)}
    assert law_of(coin) == pytest.approx(laws)


@pytest.mark.parametrize("kind", ["int64", np.dtype("int32"), np.int16, int])
def test_the_type_of_a_whole_number_is_named_as_numpy_takes_it(kind):
    assert law_of(lambda: int(np.random.RandomState(3).randint(0, 2, dtype=kind))) == {0: 0.5, 1: 0.5}


@pytest.mark.parametrize("printed", ["{:.3f}".format, str, "%s".__mod__])
def test_who_prints_a_random_number_is_told_to_leave_that_out(printed):
    with pytest.raises(NeedsValue, match="leave out, while it is examined, what prints the number or logs it"):
        law_of(lambda: printed(random.random()))
