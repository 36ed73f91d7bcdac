"""Arithmetic of whole numbers that nobody has looked at gives what torch gives, and looks at what it needs alone."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from specverify.intercept.refusals import NeedsValue
from specverify.intercept.symbolic.deferred import Deferred
from specverify.intercept.torch.elementwise import NAMES
from specverify.intercept.torch.tensors import SymbolicTensor, look_at
from test_support.intercept.answered_laws import law_of

DTYPES = (torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool)
SHAPES = ((2, 3), (3,), (2, 1), ())
OF_ONE = {"neg", "abs"}
BY_NUMBERS = {"rsub", "clamp", "clamp_min", "clamp_max"}


def operation(name):
    return getattr(torch.Tensor, name, None) or getattr(torch, name)


def lazily(tensor, looked):
    elements = np.empty(tuple(tensor.shape), dtype=object)
    for index in np.ndindex(elements.shape):
        number = int(tensor[index])

        def look(number=number, index=index):
            looked.append(index)
            return number

        elements[index] = Deferred(look)
    return SymbolicTensor(elements, tensor.dtype, "cpu")


def tried(function, operands):
    """Return what a function gives, and the first line of what it raises."""
    try:
        return function(*operands), ""
    except RuntimeError as error:
        return None, str(error).splitlines()[0]


@st.composite
def tensors(draw):
    dtype, shape = draw(st.sampled_from(DTYPES)), draw(st.sampled_from(SHAPES))
    low, high = (0, 1) if dtype is torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    numbers = st.sampled_from([0, 1, low, high]) | st.integers(max(low, -5), min(high, 5))
    size = int(np.prod(shape))
    return torch.tensor(draw(st.lists(numbers, min_size=size, max_size=size)), dtype=dtype).reshape(shape)


WAYS = {
    "to": lambda u, dtype: u.to(dtype),
    "copy_": lambda u, dtype: torch.empty(1, dtype=dtype).copy_(u),
    "an index": lambda u, dtype: _written(torch.empty(1, dtype=dtype), u),
    "tensor": lambda u, dtype: torch.tensor([u.item()], dtype=dtype),
    "full": lambda u, dtype: torch.full((1,), u.item(), dtype=dtype),
    "add": lambda u, dtype: torch.zeros(1, dtype=dtype) + u[0],
    "mul of a number": lambda u, dtype: torch.ones(1, dtype=dtype) * u.item(),
    "cumsum": lambda u, dtype: u.cumsum(0, dtype=dtype),
    "sum": lambda u, dtype: u.sum(dtype=dtype),
    "type_as": lambda u, dtype: u.type_as(torch.zeros(1, dtype=dtype)),
}


def _written(row, u):
    row[0] = u[0]
    return row


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("way", WAYS)
def test_a_uniform_that_is_put_into_16_bits_is_1_as_often_as_it_rounds_to_1(way, dtype):
    """As a uniform that has digits enough it is never 1; of a draft with p equal to q that is a rejection."""
    law = law_of(lambda: bool(WAYS[way](torch.rand(1, dtype=torch.float64), dtype).double() >= 1.0))
    assert law[True] == pytest.approx(torch.finfo(dtype).eps / 4, rel=1e-6)


def test_a_uniform_that_is_put_into_8_bits_is_refused():
    with pytest.raises(NeedsValue, match="converted to float8_e5m2, which has too few numbers"):
        law_of(lambda: bool(torch.rand(1).to(torch.float8_e5m2).float() < 0.3))


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("name", sorted(NAMES))
@settings(deadline=None)
@given(data=st.data())
def test_it_gives_what_torch_gives(name, data):
    left, looked = data.draw(tensors()), []
    right = data.draw(st.integers(-3, 3) if name in BY_NUMBERS else tensors())
    operands = (left,) if name in OF_ONE else (left, right)
    open_ones = [isinstance(each, torch.Tensor) and data.draw(st.booleans()) for each in operands[1:]]
    lazy = [lazily(left, looked), *(lazily(each, looked) if is_open else each
                                    for each, is_open in zip(operands[1:], open_ones, strict=True))]  # fmt: skip
    wanted, refused = tried(operation(name), operands)
    if refused:
        assert tried(lambda *given: look_at(operation(name)(*given)), lazy) == (None, refused)
        return
    found = operation(name)(*lazy)
    assert isinstance(found, SymbolicTensor)
    assert not looked
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    assert torch.equal(look_at(found), wanted)


def test_what_is_beside_a_zero_is_not_looked_at():
    looked = []
    ids = lazily(torch.tensor([5, 6, 7]), looked)
    mask = torch.tensor([False, True, False])
    kept = ids * mask + torch.tensor([0, 0, 9])
    assert look_at(kept).tolist() == [0, 6, 9]
    assert looked == [(1,)]


def test_a_mask_is_looked_at_before_what_it_hides():
    looked, of_mask = [], []
    kept = lazily(torch.tensor([5, 6]), looked) * lazily(torch.tensor([True, False]), of_mask)
    assert look_at(kept).tolist() == [5, 0]
    assert (looked, of_mask) == ([(0,)], [(0,), (1,)])


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16])
@pytest.mark.parametrize("least", [-8, 120, 240, 248])
def test_whole_parts_that_a_dtype_does_not_hold_are_what_torch_makes_of_them(least, dtype):
    parts = (torch.arange(16) + least + 0.5).trunc().to(dtype).tolist()
    expected = {part: parts.count(part) / 16 for part in parts}
    assert law_of(lambda: int((torch.rand(1) * 16 + least).to(dtype)[0])) == pytest.approx(expected)


def test_a_clamp_that_is_one_more_than_a_dtype_holds_becomes_the_least():
    clamped = law_of(lambda: int((torch.rand(1) * 4 + 254).clamp(max=256).to(torch.uint8)[0]))
    assert clamped == pytest.approx({254: 0.25, 255: 0.25, 0: 0.5})


def test_a_deep_copy_of_random_numbers_holds_the_same_ones():
    def call():
        row = torch.rand(2)
        again = copy.deepcopy({"row": row})["row"]
        row[0] = 2.0
        return bool(again[0] < 0.3), bool(again[1] < 0.5) == bool(row[1] < 0.5)

    assert law_of(call) == pytest.approx({(True, True): 0.3, (False, True): 0.7})


def test_random_numbers_are_not_pickled_and_tokens_are():
    with pytest.raises(NeedsValue):
        law_of(lambda: len(pickle.dumps(torch.rand(2))))
    weights = torch.tensor([0.25, 0.75])
    assert law_of(lambda: int(pickle.loads(pickle.dumps(torch.multinomial(weights, 1))))) == {0: 0.25, 1: 0.75}
