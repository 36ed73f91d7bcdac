"""The table of primitives: no blank without a reason, no name twice, and columns that agree with each other."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from specverify.intercept.audit import Draw
from specverify.intercept.refusals import RuleDeclined
from specverify.intercept.symbolic.continuous import Continuous
from specverify.intercept.symbolic.primitives import (
    ELEMENTWISE,
    PRIMITIVES,
    Blank,
    Family,
    Primitive,
    applied,
    applied_to_many,
    table,
)
from specverify.intercept.symbolic.vectors import NoiseBlock, uniforms
from specverify.laws.draws import Tape
from tools.pages import primitives_page

COLUMNS = ("scalar", "vector", "outcome")
SIZE = 3
WITH_VECTORS = [row for row in ELEMENTWISE.values() if not isinstance(row.vector, Blank)]
TWO = {"add": 0.75, "subtract": 0.75, "multiply": 0.75, "divide": 0.75, "power": 0.75, "float_power": 0.75,
       "ldexp": 2.0,
       "maximum": 0.25, "minimum": 0.25, "fmax": 0.25, "fmin": 0.25}  # fmt: skip
"""Operations of two numbers, and the second one."""


def without_reason(rows):
    """Return the blanks that state none, and the cells that are neither a rule nor a blank."""
    return [
        (row.name, column)
        for row in rows
        for column in COLUMNS
        for cell in [getattr(row, column)]
        if not (cell.reason.strip() if isinstance(cell, Blank) else callable(cell))
    ]


def test_every_cell_holds_a_rule_or_the_reason_why_there_is_none():
    print(primitives_page.page())  # noqa: T201 - what pytest shows when it fails
    assert without_reason(PRIMITIVES.values()) == []
    assert all(row.family in Family for row in PRIMITIVES.values())


def test_a_cell_without_either_is_noticed():
    bad = PRIMITIVES["add"]._replace(name="bad", scalar=Blank(" "), outcome=None)
    assert without_reason([PRIMITIVES["add"], bad]) == [("bad", "scalar"), ("bad", "outcome")]


def test_every_scalar_rule_exists_and_the_page_is_what_would_be_written_now():
    assert [row.name for row in PRIMITIVES.values() if isinstance(row.scalar, Blank)] == []
    assert Path("docs/primitives.md").read_text() == primitives_page.page()


@pytest.mark.parametrize("more", [{}, {"name": "other", "torch": ("add",)}, {"name": "other", "jax": ("add_any",)}])
def test_to_register_an_operation_twice_is_an_error(more):
    with pytest.raises(ValueError, match="registered twice"):
        table([PRIMITIVES["add"], PRIMITIVES["add"]._replace(**more)])


def test_other_names_are_no_error():
    other = PRIMITIVES["add"]._replace(name="other", torch=("other",), jax=(), python=())
    assert list(table([PRIMITIVES["add"], other])) == ["add", "other"]


def noise(numbers=0.0):
    """Return a vector of uniform numbers, moved by some."""
    draws = Tape(0)
    made = uniforms(NoiseBlock(draws, ("u",), Draw(("u",)), SIZE), (SIZE,))
    return applied_to_many("add", made, np.full(SIZE, numbers)) if numbers else made


def operands_of(name):
    if name == "clip":
        return (0.25, 0.75)
    return (TWO[name],) if name in TWO else ()


def disagreements(rows):
    """Return the rows whose vector rule gives other elements than the scalar rule does of each."""
    found = []
    for row in rows:
        value = noise()
        more = operands_of(row.name)
        together = row.vector(value, *(np.asarray(each, dtype=np.float64) for each in more))
        for place in range(SIZE):
            one = applied(row.name, value.element(place), *more)
            other = together.element(place)
            if type(one) is not type(other) or not alike(one, other):
                found.append(row.name)
                break
    return found


def alike(one, other):
    """Return whether two functions of uniforms are one: by their images at some places, and their ends."""
    if not isinstance(one, Continuous):
        return one == pytest.approx(other)
    places = (0.125, 0.25, 0.5, 0.875)
    images = [[image(value, place) for place in places] for value in (one, other)]
    return images[0] == pytest.approx(images[1], rel=1e-12) and one.ends() == pytest.approx(other.ends())


def image(value, place):
    for step in value.steps:
        place = step.of(place)
    return min(max(place, value.low), value.high)


def test_a_vector_rule_agrees_with_the_scalar_rule():
    with np.errstate(all="ignore"):
        assert disagreements(WITH_VECTORS) == []


def test_a_wrong_vector_rule_is_noticed():
    wrong = ELEMENTWISE["sigmoid"]._replace(vector=ELEMENTWISE["tanh"].vector)
    assert disagreements([wrong, ELEMENTWISE["exp"]]) == ["sigmoid"]


@pytest.mark.parametrize("name", [row.name for row in ELEMENTWISE.values() if isinstance(row.vector, Blank)])
def test_a_blank_vector_rule_is_declined_with_its_reason(name):
    with pytest.raises(RuleDeclined) as declined:
        applied_to_many(name, noise())
    assert ELEMENTWISE[name].vector.reason in declined.value.declined.reason


NUMBERS = [-3, -1, 0, 1, 2, 5]


@pytest.mark.parametrize(
    "row",
    [row for row in ELEMENTWISE.values() if not isinstance(row.outcome, Blank)],
    ids=lambda row: row.name,
)
def test_an_outcome_rule_keeps_whole_numbers_whole(row):
    count = 3 if row.name == "clip" else 2 if row.name in TWO or row.name in {"floor_divide", "remainder"} else 1
    for number in NUMBERS:
        found = row.outcome(*[np.int64(number), np.int64(2), np.int64(3)][:count])
        assert np.asarray(found).dtype.kind == "i"
        assert math.isfinite(found)


def test_primitive_is_a_plain_value():
    assert PRIMITIVES["add"] == Primitive(*PRIMITIVES["add"])
