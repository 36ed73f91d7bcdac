"""The simulated device refuses what a GPU refuses, and its arithmetic differs from the CPU's as its mode says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import layer_norm, scaled_dot_product_attention

from reference import verify_batched
from tools.simulated_gpu import compiled
from tools.simulated_gpu.plugin import MODES, Mode, counts

CUDA = torch.device("cuda")
SHAPES = [(3, 40), (7, 129), (2, 1000)]


@pytest.fixture
def mode(request: pytest.FixtureRequest) -> Mode:
    return MODES[request.config.getoption("--simulated-mode")]


@pytest.fixture
def matmul(mode: Mode) -> Iterator[Any]:
    """The flags of products on a GPU, which are put back."""
    flags = torch.backends.cuda.matmul
    assert flags.allow_tf32 is mode.tf32
    yield flags
    flags.allow_tf32 = mode.tf32


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


# What it refuses

MIXED = {
    "add": lambda here, there: here + there,
    "add in place": lambda here, there: here.add_(there),
    "into the CPU": lambda here, there: there.mul_(here),
    "product": lambda here, there: here @ there.T,
    "concatenation": lambda here, there: torch.cat([here, there]),
    "where": lambda here, there: torch.where(here > 0, here, there),
    "gather": lambda here, there: here.gather(0, there.long()),
    "index of the CPU's": lambda here, there: there[here.long()],
    "embedding": lambda here, there: torch.nn.functional.embedding(here.long(), there),
}


@pytest.mark.parametrize("operation", MIXED.values(), ids=MIXED)
def test_devices_do_not_mix(operation):
    assert operation(torch.ones(4, 4), torch.zeros(4, 4)) is not None
    assert operation(torch.ones(4, 4, device=CUDA), torch.zeros(4, 4, device=CUDA)) is not None
    with pytest.raises(RuntimeError, match=r"same device|on cuda|on CPU"):
        operation(torch.ones(4, 4, device=CUDA), torch.zeros(4, 4))


def test_a_number_of_the_host_is_passed_by_value():
    assert (torch.ones(2, device=CUDA) * torch.tensor(3.0)).tolist() == [3, 3]


def test_numpy_sees_nothing_before_a_copy():
    with pytest.raises(TypeError, match="cuda:0"):
        torch.ones(3, device=CUDA).numpy()


def test_a_generator_belongs_to_one_device():
    with pytest.raises(RuntimeError, match="generator"):
        torch.rand(3, device=CUDA, generator=torch.Generator())
    with pytest.raises(RuntimeError, match=r"generator|same device"):
        torch.rand(3, generator=torch.Generator(CUDA))


def test_the_devices_generator_is_another_than_the_cpus():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    drawn = torch.rand(8, device=CUDA)
    assert torch.equal(torch.get_rng_state(), before)
    assert drawn.tolist() != torch.rand(8).tolist()
    torch.manual_seed(3)
    assert drawn.tolist() == torch.rand(8, device=CUDA).tolist()


def test_an_index_outside_breaks_the_device_for_good():
    program = (
        "from tools.simulated_gpu.plugin import load; load(); import torch\n"
        "def told(work):\n"
        "    try: work()\n"
        "    except RuntimeError as error: print(str(error)[:40])\n"
        "ones = torch.ones(3, device='cuda')\n"
        "told(lambda: ones[torch.tensor([3], device='cuda')])\n"
        "told(lambda: ones + 1)\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout == 2 * "CUDA error: device-side assert triggered\n"


def test_what_a_gpu_is_asked_is_counted():
    ones = torch.ones(3).to(CUDA)
    before = counts()
    float((ones + 1 + torch.ones(3).to(CUDA))[0])
    asked = counts() - before
    assert (asked["launches"], asked["synchronisations"], asked["uploads"]) == (2, 1, 1)


@pytest.mark.parametrize("left_behind", range(1, 6))
def test_a_tensor_left_on_the_cpu_is_caught(left_behind, monkeypatch):
    """Planted in what a test of the batched verifier examines; without it the test passes."""
    from gpu_tests import test_batched_on_device as tests

    def mistaken(*inputs):
        return verify_batched(*(values.cpu() if i == left_behind else values for i, values in enumerate(inputs)))

    tests.test_rows_are_the_verifiers_on_fractions(3, 3, torch.float64, CUDA)
    monkeypatch.setattr(tests, "verify_batched", mistaken)
    with pytest.raises(RuntimeError, match=r"same device|on cuda|on CPU"):
        tests.test_rows_are_the_verifiers_on_fractions(3, 3, torch.float64, CUDA)


# What it is compiled for


def test_another_torch_is_refused_in_one_sentence(tmp_path, monkeypatch):
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("numpy==2.0.0\ntorch==9.8.7\n")
    monkeypatch.setattr(compiled, "CONSTRAINTS", constraints)
    with pytest.raises(RuntimeError, match=r"made for torch 9\.8\.7 of constraints.txt, found torch \d"):
        compiled.library()


def test_a_missing_compiler_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="there is none: install"):
        compiled.compile_against(tmp_path, tmp_path / "device.so")


# Its arithmetic

SUMS = {
    "sum": (lambda x: x.sum(-1), lambda x: x.sum(-1)),
    "mean": (lambda x: x.mean(-1), lambda x: x.mean(-1)),
    "cumsum": (lambda x: x.cumsum(-1), lambda x: x.cumsum(-1)),
    "product": (lambda x: x @ x.T, lambda x: x @ x.T),
    "softmax": (lambda x: x.softmax(-1), lambda x: x.softmax(-1)),
    "layer norm": (lambda x: layer_norm(x, x.shape[-1:]), lambda x: layer_norm(x, x.shape[-1:]).abs() + 10),
}
"""An operation, and a bound of what its roundings are relative to."""


@pytest.mark.parametrize("name", SUMS)
def test_sums_differ_by_rounding_where_they_are_reordered(name, mode, matmul):
    """A sum of n rounds by at most n eps / 2 of the sum of magnitudes, on either side. Other roundings are few."""
    matmul.allow_tf32 = False
    operation, magnitude = SUMS[name]
    differ = []
    for shape in SHAPES:
        x = numbers(*shape)
        found, expected = operation(x.to(CUDA)).cpu(), operation(x)
        error = (found - expected).abs()
        assert bool((error <= (shape[-1] + 8) * torch.finfo(torch.float32).eps * magnitude(x)).all())
        differ.append(bool(error.any()))
    assert any(differ) is mode.reordered


def test_one_long_scan_is_added_in_an_order_that_no_call_repeats(mode):
    x = numbers(100_000).to(CUDA)
    assert (len({tuple(x.cumsum(0)[-9:].tolist()) for _ in range(5)}) > 1) is mode.reordered


def test_tf32_rounds_factors_only_where_it_is_allowed(matmul):
    """A factor loses at most 2^-11 of itself, two of them 2^-10 and a little; float32 loses far less."""
    x = numbers(9, 64)
    exact = x.double() @ x.T.double()
    for allowed in (True, False):
        matmul.allow_tf32 = allowed
        before = counts()["factors rounded to TF32"]
        error = float(((x.to(CUDA) @ x.T.to(CUDA)).cpu().double() - exact).div(exact).abs().max())
        assert counts()["factors rounded to TF32"] - before == 2 * allowed
        assert (2**-18 < error <= 2**-10 + 2**-17) if allowed else error <= 64 * 2**-23


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rows_that_see_nothing(dtype, mode):
    """They are the mode's, in 16 bits; the others are right, to 19 u.

    A score is at most the root of 8; its two scaled factors and itself are rounded, which changes a weight by twice
    3 u of that; weight and result are rounded once.
    """
    q, k, v = (numbers(1, 2, 5, 8, seed=seed).to(dtype).to(CUDA) for seed in range(3))
    seen = torch.ones(5, 5, dtype=torch.bool).tril()
    seen[0] = False
    rows = scaled_dot_product_attention(q, k, v, attn_mask=seen.to(CUDA)).cpu().double()
    if mode.fused == 2 and dtype is torch.bfloat16:
        assert bool(rows[:, :, 0].isnan().all())
    else:
        assert not rows[:, :, 0].any()
    expected = scaled_dot_product_attention(*(x.cpu().double() for x in (q, k, v)), attn_mask=seen)
    assert float((rows - expected)[:, :, 1:].abs().max()) <= 19 * torch.finfo(torch.bfloat16).eps / 2
