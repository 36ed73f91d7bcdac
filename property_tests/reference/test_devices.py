"""What the batched verifiers and the cache's gather make stands on the device of their inputs, and nowhere else.

PyTorch's meta device holds no data: a value that had to come from another device would be an error, and where each
tensor stands can be read without any accelerator.
"""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch.overrides import TorchFunctionMode  # noqa: E402 - after the question whether it is installed

from reference import greedy_batched, inverse_cdf_batched, verify_batched  # noqa: E402
from reference.kv_cache import keep_path  # noqa: E402

META = torch.device("meta")
B, GAMMA, V = 2, 3, 5
LONG = 1025
"""Tokens of a row that is cut into blocks, and filled up."""


class Devices(TorchFunctionMode):
    """Keeps where the tensors stand that are made while it is entered."""

    def __init__(self):
        """``seen`` grows with every call that answers a tensor."""
        super().__init__()
        self.seen = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        answer = function(*args, **(kwargs or {}))
        self.seen += [answer.device.type] if isinstance(answer, torch.Tensor) else []
        return answer


def floats(*shape):
    return torch.empty(shape, device=META)


def integers(*shape):
    return torch.empty(shape, dtype=torch.int64, device=META)


@pytest.mark.parametrize(
    "call",
    [
        lambda: (
            verify_batched(
                floats(B, GAMMA + 1, V),
                floats(B, GAMMA, V),
                integers(B, GAMMA),
                integers(B),
                floats(B, GAMMA),
                floats(B),
            ).emitted
        ),
        lambda: greedy_batched(floats(B, GAMMA + 1, V), integers(B, GAMMA), integers(B)).emitted,
        lambda: inverse_cdf_batched(floats(B, V), floats(B)),
        lambda: inverse_cdf_batched(floats(B, LONG), floats(B)),
        lambda: keep_path(floats(1, 2, 7, 4), 3, (0, 2)),
    ],
    ids=["sampled", "greedy", "inverse cdf", "blocks", "path"],
)
def test_everything_made_stands_on_the_device_of_the_inputs(call):
    with Devices() as devices:
        answer = call()
    assert answer.device == META
    assert len(devices.seen) > 1
    assert set(devices.seen) == {"meta"}


def test_float32_weights_are_summed_in_float64_whatever_the_library():
    """Beside 1/2 a mass of 2**-26 is lost in a float32 sum; NumPy widens by itself, PyTorch does not."""
    weights = torch.tensor([[0.5, 2.0**-26, 0.5 - 2.0**-25]], dtype=torch.float32)
    assert weights.cumsum(dim=-1)[0, 1] == 0.5
    uniforms = torch.tensor([0.5 + 2.0**-26], dtype=torch.float64)
    assert inverse_cdf_batched(weights, uniforms).tolist() == [1]


def test_a_planted_array_on_the_default_device_is_noticed():
    with Devices() as devices:
        floats(2, 3)[torch.arange(2)]
    assert set(devices.seen) == {"cpu", "meta"}
