"""Digests of content: one digest only for what holds the same, and none for what cannot be read."""

from __future__ import annotations

import array
import collections
import copy
import enum
import functools
import random
import threading
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from specverify.intercept.torch.passes import NoContent, digest

Colour = enum.Enum("Colour", "RED GREEN")
Same = enum.Enum("Same", "RED GREEN")


class One(NamedTuple):
    """A pair."""

    a: int
    b: int


class Other(NamedTuple):
    """Another pair."""

    a: int
    b: int


class Thing:
    """Holds whatever it is given."""

    def __init__(self, **attributes):  # noqa: D107
        vars(self).update(attributes)


class Child(Thing):
    """A thing of another type."""


class Slots:
    """Holds something that is no attribute in a dictionary."""

    __slots__ = ("a",)


class ListWithSlots(list):
    """Holds more than its items."""

    __slots__ = ("more",)


class ListWithAttributes(list):
    """Holds more than its items, where it can be read."""


class NamedArray(array.array):
    """Holds more than its attributes: its numbers, which a type of C keeps to itself."""


class Array(np.ndarray):
    """May hold more than its numbers."""


def with_attributes(items, **attributes):
    made = ListWithAttributes(items)
    vars(made).update(attributes)
    return made


def tensor(*numbers, dtype=torch.float32):
    return torch.tensor(numbers, dtype=dtype)


def cycle(*items):
    made = [*items]
    made.append(made)
    return made


DIFFERENT = [
    ((1, 23), (12, 3)),
    (("a", "b"), ("ab", "")),
    (["1 "], ["1", ""]),
    ([[1], [2]], [[1, 2], []]),
    ([[1], 2], [[1, 2]]),
    ([1], (1,)),
    (One(1, 2), Other(1, 2)),
    (One(1, 2), (1, 2)),
    (1, 1.0),
    (1, True),
    (1, "1"),
    (b"1", "1"),
    (None, "None"),
    (0.0, -0.0),
    (1j, 1.0),
    ({1: 2}, {2: 1}),
    ({1: 2}, {"1": 2}),
    ({"a": 1, "b": 2}, {"a": 2, "b": 1}),
    ({"a": {}}, {"a": []}),
    ({1, 2}, {1, 3}),
    ({1}, frozenset({1})),
    ({(1, 23)}, {(12, 3)}),
    (range(3), range(4)),
    (collections.OrderedDict(a=1, b=2), collections.OrderedDict(b=2, a=1)),
    (collections.OrderedDict(a=1), {"a": 1}),
    (Thing(a=1), Thing(a=2)),
    (Thing(a=1), Thing(b=1)),
    (Thing(a=1), Child(a=1)),
    (Thing(a=1), {"a": 1}),
    (with_attributes([1], a=1), with_attributes([1], a=2)),
    (with_attributes([1]), with_attributes([2])),
    (Colour.RED, Colour.GREEN),
    (Colour.RED, Same.RED),
    (Thing, Child),
    (cycle(1), [1, [1]]),
    (cycle(1), cycle(2)),
    (tensor(1, 2), tensor(1, 3)),
    (tensor(1, 2), tensor(1, 2)[None]),
    (tensor(1), tensor(1, dtype=torch.float64)),
    (tensor(1, dtype=torch.float16), tensor(1, dtype=torch.bfloat16)),
    (tensor(1.0, dtype=torch.bfloat16), tensor(1.0078125, dtype=torch.bfloat16)),
    (torch.zeros(1, dtype=torch.bfloat16), torch.zeros(1, dtype=torch.int16)),
    (tensor(0.0), tensor(-0.0)),
    (tensor(1), torch.nn.Parameter(tensor(1))),
    (torch.tensor([1 + 2j]), torch.tensor([1 + 2j]).conj()),
    (torch.float32, torch.float16),
    (torch.Size([2]), (2,)),
    (np.array([1, 2]), [1, 2]),
    (np.array([1, 2]), np.array([[1, 2]])),
    (np.array([1], dtype="i4"), np.array([1], dtype="i8")),
    (np.array([1], dtype="<i4"), np.array([16777216], dtype=">i4")),
    (np.array([1, 2, 3, 4, 5, 6]).reshape(2, 3), np.array([1, 2, 3, 4, 5, 6]).reshape(3, 2)),
    (np.array([(1,)], dtype=[("a", "i4")]), np.array([(1,)], dtype=[("b", "i4")])),
    (np.array([1, "a"], dtype=object), np.array(["1", "a"], dtype=object)),
    (np.float32(1), np.float64(1)),
    (np.array(1), np.int64(1)),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT, ids=lambda value: type(value).__name__)
def test_what_differs_has_another_digest(one, other):
    assert digest(one) != digest(other)
    assert digest([one]) != digest([other])
    assert digest(Thing(held=one)) != digest(Thing(held=other))


@pytest.mark.parametrize(
    "value", [value for pair in DIFFERENT for value in pair], ids=lambda value: type(value).__name__
)
def test_a_copy_has_the_same_digest(value):
    assert digest(copy.deepcopy(value)) == digest(value)


def test_the_order_of_what_has_none_does_not_count():
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest({1: 2, "1": 3}) == digest({"1": 3, 1: 2})
    assert digest(set(map(str, range(40)))) == digest(set(map(str, reversed(range(40)))))
    assert digest(Thing(a=1, b=2)) == digest(Thing(b=2, a=1))


def test_how_numbers_lie_in_memory_does_not_count():
    rows = torch.arange(6.0).reshape(2, 3)
    assert digest(rows.t().contiguous()) == digest(rows.t())
    assert digest(rows[:, 1]) == digest(rows[:, 1].clone())
    assert digest(np.asfortranarray(rows.numpy())) == digest(rows.numpy())
    assert digest(torch.tensor([1 + 2j]).conj()) == digest(torch.tensor([1 - 2j]))


NOT_READ = {
    "a function": lambda: 0,
    "a function with a memory": functools.cache(int),
    "a method": Thing().__init__,
    "a partial function": functools.partial(int, "1"),
    "a generator": (item for item in ()),
    "an iterator": iter([1]),
    "a lock": threading.Lock(),
    "an object": object(),
    "slots": Slots(),
    "a list with slots": ListWithSlots([1]),
    "a type of C with attributes": NamedArray("d", [1.0]),
    "a defaultdict": collections.defaultdict(list),
    "a deque": collections.deque([1]),
    "a bytearray": bytearray(b"1"),
    "a rational": Fraction(1, 2),
    "a module": random,
    "an exception": ValueError("a"),
    "a generator of NumPy": np.random.default_rng(0),
    "a generator of torch": torch.Generator(),
    "a network": torch.nn.Linear(1, 1),
    "a masked array": np.ma.array([1, 2], mask=[0, 1]),
    "an array of a subclass": np.ones(1).view(Array),
    "a sparse tensor": torch.eye(2).to_sparse(),
    "a tensor without numbers": torch.empty(2, device="meta"),
}


@pytest.mark.parametrize("value", NOT_READ.values(), ids=NOT_READ)
def test_what_cannot_be_read_has_no_digest(value):
    for held in (value, [value], {"a": value}, Thing(a=value)):
        with pytest.raises(NoContent, match=r"the content of a .* cannot be read"):
            digest(held)


def test_an_open_file_has_no_digest(tmp_path):
    path = Path(tmp_path / "file")
    path.write_text("1", "utf-8")
    with path.open(encoding="utf-8") as file, pytest.raises(NoContent, match="TextIOWrapper"):
        digest(file)


def test_a_tensor_that_holds_more_has_no_digest():
    marked = tensor(1)
    marked.mark = 1
    with pytest.raises(NoContent, match="Tensor"):
        digest(marked)


def test_what_contains_itself_in_a_set_has_no_digest():
    thing = Thing()
    thing.held = {thing}
    with pytest.raises(NoContent, match="contains itself"):
        digest(thing)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=6,
)


def alike(one, other):
    """Equal, and of one type all the way down."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[name], other[name]) for name in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(alike, one, other))
    return one == other


@pytest.mark.thorough
@given(plain, plain)
def test_two_plain_values_have_one_digest_only_if_they_are_alike(one, other):
    assert (digest(one) == digest(other)) == alike(one, other)
    assert digest(one) == digest(copy.deepcopy(one))
