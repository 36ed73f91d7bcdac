"""The batched verifiers on the device, eager and compiled: each row equals the reference's on the same random tape."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

from reference import Batch, greedy_batched, verify_batched
from test_support.gpu.batches import Inputs, differing, dyadic, on_device

SHAPES = [(1, 2), (2, 1), (3, 0), (3, 3), (11, 2), (300, 4)]
DTYPES = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16}


def compiled(function: Callable[..., Batch], backend: str, *arguments: Any) -> Batch:
    """Return the result of ``function`` compiled by ``backend``; a graph break is an error, warnings are ignored."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.compiler.reset()  # it imports the compiler, which is full of what is deprecated
        return torch.compile(function, fullgraph=True, backend=backend, dynamic=False)(*arguments)


@pytest.fixture(scope="module")
def compiler(device: torch.device) -> str:
    """Return the name of the compiler backend that makes kernels.

    Skip the test with its message if it is not available.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.compile(lambda x: x.cos() + 1, fullgraph=True)(torch.zeros(8, device=device))
    except Exception as error:  # noqa: BLE001 - which error a missing compiler raises differs by platform
        pytest.skip(f"torch.compile makes no kernel here: {type(error).__name__}: {str(error).splitlines()[0]}")
    return "inductor"


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
@pytest.mark.parametrize(("vocabulary", "gamma"), SHAPES)
def test_rows_are_the_verifiers_on_fractions(
    vocabulary: int, gamma: int, dtype: torch.dtype, device: torch.device
) -> None:
    for seed in range(3):
        inputs = dyadic(seed, vocabulary, gamma, batch=60)
        batch = verify_batched(*on_device(inputs, device, dtype))
        assert {values.device.type for values in batch} == {device.type}
        assert differing(inputs, batch, exact=True) == []


def test_planted_neighbours_uniform_is_noticed(device: torch.device) -> None:
    """Planted bug: every row gets the uniforms of the row before it. The law is the same, the rows are not."""
    inputs = dyadic(0, 11, 2, batch=60)
    moved = on_device(inputs, device)
    moved = moved._replace(final_uniforms=moved.final_uniforms.roll(1))
    assert len(differing(inputs, verify_batched(*moved), exact=True)) > 0


def assert_equal(found: Batch, expected: Batch) -> None:
    for name, values, wanted in zip(Batch._fields, found, expected, strict=True):
        assert values.tolist() == wanted.tolist(), name
        assert (values.dtype, values.device) == (wanted.dtype, wanted.device)


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(("vocabulary", "gamma"), [(3, 0), (11, 2)])
def test_the_graph_is_whole(vocabulary: int, gamma: int, device: torch.device) -> None:
    """Dynamo traces the function without a graph break, whichever backend compiles the graph afterwards."""
    tensors = on_device(dyadic(0, vocabulary, gamma, batch=60), device)
    assert_equal(compiled(verify_batched, "eager", *tensors), verify_batched(*tensors))
    greedy = tensors.p.nan_to_num(), tensors.draft_tokens, tensors.lengths
    assert_equal(compiled(greedy_batched, "eager", *greedy), greedy_batched(*greedy))


@pytest.mark.thorough
def test_compiled_rows_are_the_verifiers_on_fractions(compiler: str, device: torch.device) -> None:
    """Compiled rows equal the verifier on fractions.

    Only one shape and dtype is tested: a compiler may take most of a minute for the first kernel.
    """
    inputs = dyadic(0, 11, 2, batch=200)
    assert (
        differing(inputs, compiled(verify_batched, compiler, *on_device(inputs, device, torch.float32)), exact=True)
        == []
    )


def test_a_draw_from_numpy_and_from_the_device_are_one(device: torch.device) -> None:
    """The same uniform gives the same draw with NumPy and on the device.

    The pmfs are float64 and not round numbers; both sides add in float64, each in its own order.
    """
    generator = torch.Generator().manual_seed(0)
    p = torch.rand((200, 4, 500), generator=generator, dtype=torch.float64).softmax(dim=-1)
    q = torch.rand((200, 3, 500), generator=generator, dtype=torch.float64).softmax(dim=-1)
    tokens = torch.randint(500, (200, 3), generator=generator)
    lengths = torch.randint(4, (200,), generator=generator)
    accepts, finals = (torch.rand(shape, generator=generator, dtype=torch.float64) for shape in ((200, 3), (200,)))
    inputs = Inputs(*(values.numpy() for values in (p, q, tokens, lengths, accepts, finals)))
    expected = verify_batched(*inputs)
    found = verify_batched(*on_device(inputs, device))
    assert found.emitted.tolist() == expected.emitted.tolist()
    assert differing(inputs, found, exact=False) == []
