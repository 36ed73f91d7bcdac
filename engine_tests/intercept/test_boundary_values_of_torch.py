"""What a boundary draw of torch is given is what its CPU generator returns: from states in which it returns it."""

from __future__ import annotations

import struct

import numpy as np
import pytest
import torch

from reference import Sampled
from specverify.intercept.distributions import Boundary
from specverify.intercept.everywhere import answered_everywhere

WORDS = 624
NOTHING, ONE, EVERYTHING = 0x0, 0x1022_44C9, 0x12DD_9BB3
"""Words of a state that come out as 32 zeros, as the number 1 and as 32 ones."""
DTYPES = {torch.float64: 53, torch.float32: 24, torch.float16: 11, torch.bfloat16: 8}
"""Bits of the significand."""


def generator(*words):
    """Return a generator whose state holds these words again and again."""
    made = torch.Generator().manual_seed(0)
    raw = made.get_state().numpy().tobytes()
    head = struct.pack("<QiiQ", struct.unpack_from("<Q", raw)[0], WORDS, 1, 0)
    held = np.resize(np.array(words, dtype=np.uint64), WORDS)
    state = head + held.tobytes() + raw[len(head) + held.nbytes :]
    made.set_state(torch.from_numpy(np.frombuffer(state, dtype=np.uint8).copy()))
    return made


def forced(end, draw):
    with answered_everywhere(Sampled(0), end):
        return draw()


every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize(("end", "word"), [(0.0, NOTHING), (1.0, EVERYTHING)])
def test_the_ends_of_a_uniform_are_what_the_generator_returns_there(dtype, end, word):
    found = forced(end, lambda: torch.rand(2, dtype=dtype))
    assert torch.equal(found, torch.rand(2, dtype=dtype, generator=generator(word)))
    assert found.dtype is dtype


@every_dtype
def test_no_uniform_of_a_dtype_is_above_the_largest(dtype):
    largest = float(forced(1.0, lambda: torch.rand((), dtype=dtype)))
    assert largest == 1 - 2.0 ** -DTYPES[dtype]
    drawn = torch.rand(300_000, dtype=dtype, generator=torch.Generator().manual_seed(1)).double()
    assert drawn.max() <= largest
    assert dtype.itemsize > 2 or drawn.max() == largest, "a half has so few numbers that it comes out"


@every_dtype
def test_an_exponential_is_never_0_and_its_ends_are_those_of_float64(dtype):
    def drawn():
        return torch.empty(2, dtype=dtype).exponential_()

    assert "does not sample zero" in torch.Tensor.exponential_.__doc__
    smallest, largest = forced(0.0, drawn), forced(1.0, drawn)
    assert (smallest > 0).all()
    assert torch.equal(largest, torch.empty(2, dtype=dtype).exponential_(generator=generator(EVERYTHING)))
    if dtype is not torch.float16:  # what is left of 2**-53 in half precision is 0, which is documented not to come
        assert torch.equal(smallest, torch.empty(2, dtype=dtype).exponential_(generator=generator(NOTHING, ONE)))


def test_one_element_at_its_end_and_the_others_near_it():
    boundary = Boundary(1.0, only=1)
    found = forced(boundary, lambda: torch.rand(3))
    assert found.tolist() == [1 - 2**-6, 1 - 2**-24, 1 - 2**-6]
    assert boundary.where.startswith("torch.rand at test_boundary_values_of_torch.py:")
