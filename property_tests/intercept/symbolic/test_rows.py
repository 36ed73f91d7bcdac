"""Rules of rows: of outcomes what NumPy makes of their values, read no further than needed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from specverify.intercept.symbolic import deferred, rows
from specverify.intercept.symbolic.deferred import Choice, Count, Deferred, Product, Truth, is_count, known
from specverify.intercept.symbolic.primitives import ROWS, Family, compared
from specverify.intercept.symbolic.rows import Ask

ASK = Ask(dtype=np.int64)
NUMBERS = [-2, 0, 1, 1, 3]
TRUTHS = [1, 0, 1, 1, 0]
REDUCTIONS = [row for row in ROWS.values() if row.family in {Family.REDUCTION, Family.EXTREME}]
BOUNDS = [-1.5, -1, 0, 0.5, 1, 1.5, 2, 2.5, 3, float("inf"), float("nan")]
RELATIONS = {"less": np.less, "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal}


def unread(values, kind=Deferred):
    """Return outcomes of these values, and the list of those that were read."""
    read = []

    def outcome(place, value):
        return kind(lambda: (read.append(place), value)[1])

    return [outcome(place, value) for place, value in enumerate(values)], read


def array(values):
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result


@pytest.mark.parametrize("row", REDUCTIONS, ids=lambda row: row.name)
def test_a_reduction_gives_what_numpy_gives(row):
    for values, kind in ((NUMBERS, Deferred), (TRUTHS, Truth)):
        outcomes, _ = unread(values, kind)
        half_open = [*outcomes[:2], *values[2:]]
        wanted = int(row.outcome(values))
        assert [known(row.scalar(each, ask=ASK)) for each in (outcomes, half_open, values)] == [wanted] * 3


@pytest.mark.parametrize("row", [row for row in ROWS.values() if row.family is Family.SCAN], ids=lambda row: row.name)
def test_a_scan_gives_what_numpy_gives_from_either_end(row):
    outcomes, _ = unread(NUMBERS)
    for reverse in (False, True):
        found = rows.scanned(lambda each: row.scalar(each, ask=ASK), array(outcomes), 0, reverse=reverse)
        wanted = row.outcome(NUMBERS[::-1])[::-1] if reverse else row.outcome(NUMBERS)
        assert list(map(known, found)) == wanted.tolist()


@pytest.mark.parametrize("largest", [False, True])
def test_an_order_is_that_of_numpy_and_equal_numbers_stay_in_turn(largest):
    outcomes, _ = unread(NUMBERS)
    values, places = rows.ordered(outcomes, ASK, range(5), largest=largest)
    wanted = np.argsort(-np.array(NUMBERS) if largest else NUMBERS, kind="stable").tolist()
    assert [known(each) for each in places] == wanted
    assert [known(each) for each in values] == [NUMBERS[place] for place in wanted]


def test_reductions_of_axes_have_the_shape_of_numpy():
    whole = np.arange(24).reshape(2, 3, 4)
    for axes, keepdims in itertools.product([None, (0,), (-1,), (0, 2)], [False, True]):
        found = rows.reduced(sum, whole.astype(object), axes, keepdims=keepdims)
        assert np.array_equal(found.astype(int), whole.sum(axes, keepdims=keepdims))


def test_elements_move_as_the_positions_do():
    elements = array(["a", "b", "c"])
    assert rows.moved(lambda places: np.roll(places, 1), [elements]).tolist() == ["c", "a", "b"]
    assert rows.moved(lambda places: np.pad(places, 1), [elements], "-").tolist() == ["-", "a", "b", "c", "-"]


@pytest.mark.parametrize(
    ("rule", "values", "read"),
    [(rows.some, [0, 1, 1], [0, 1]), (rows.every, [1, 0, 1], [0, 1]), (ROWS["prod"].scalar, [1, 0, 1], [0, 1])],
)
def test_no_more_is_read_than_needed(rule, values, read):
    outcomes, looked_at = unread(values, Truth)
    known(rule(outcomes, ask=ASK))
    assert looked_at == read


def test_a_sum_is_read_up_to_the_bound():
    outcomes, read = unread([1, 1, 0], Truth)
    assert known(compared("less", ROWS["sum"].scalar(outcomes, ask=ASK), 2, "")) == 0
    assert read == [0, 1]


def wrong_answers():
    """Return the comparisons of sums with bounds that differ from those of NumPy."""
    found = []
    for values, kind in (([1, 1, 0], Truth), ([2, -3, 1], Deferred)):
        for (name, relation), bound in itertools.product(RELATIONS.items(), BOUNDS):
            outcomes, _ = unread(values, kind)
            if bool(known(compared(name, ROWS["sum"].scalar(outcomes, ask=ASK), bound, ""))) != relation(
                sum(values), bound
            ):
                found.append((name, sum(values), bound))
    return found


def test_a_sum_is_compared_as_its_value_is():
    assert wrong_answers() == []


def test_a_sum_of_negative_numbers_that_is_read_as_a_count_is_noticed(monkeypatch):
    monkeypatch.setattr(rows, "is_count", lambda element: True)
    assert ("less", 0, 1) in wrong_answers()


def test_what_is_no_count_is_not_taken_for_one():
    truth, number = Truth(lambda: 1), Deferred(lambda: 1)
    counts = [3, True, truth, Count([truth, 1]), Product([truth, truth]), Choice(truth, (0, truth))]
    others = [-1, 0.5, number, Product([truth, number]), Choice(truth, (truth, -1))]
    assert all(map(is_count, counts))
    assert not any(map(is_count, others))
    assert deferred.is_truth(Product([truth, 1]))
    assert not deferred.is_truth(Count([truth, truth]))


def test_a_choice_of_equal_cases_reads_no_condition():
    (condition,), read = unread([1], Truth)
    assert rows.choice(condition, 2, 2) == 2
    assert read == []
    assert known(rows.choice(condition, 2, 3)) == 3
