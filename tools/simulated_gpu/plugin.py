"""``pytest -p tools.simulated_gpu.plugin gpu_tests --device cuda``: a simulated CUDA device without a GPU.

``--simulated-mode`` selects how its arithmetic differs from the CPU's. The summary counts the operations that a GPU
would have done: kernels launched, waits of the host for the device, copies to it, and factors rounded to TF32.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import pytest

from tools.simulated_gpu.compiled import library

COUNTED = ("launches", "synchronisations", "uploads", "factors rounded to TF32")
DEAREST = 12
"""Tests that the summary lists, those of most launches."""


class Mode(NamedTuple):
    """Arithmetic that a GPU may have."""

    reordered: bool = False
    """Sums run in an order that depends on the shapes."""
    fused: int = 0
    """16-bit attention runs in one kernel, where a row that sees nothing is 0 (1) or not a number (2)."""
    tf32: bool = False
    """TF32 is allowed unless a program forbids it."""


MODES = {
    "plain": Mode(),
    "jitter": Mode(reordered=True),
    "tf32": Mode(tf32=True),
    "fused-zero": Mode(fused=1),
    "fused-nan": Mode(fused=2),
}


class Properties:
    """The properties of a device that programs read."""

    name, major, minor, multi_processor_count, warp_size = "simulated", 9, 0, 132, 32
    total_memory = 80 * 2**30


class Nothing:
    """A stream or an event of a device on which all work is always finished."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Accept the arguments of the real class, and ignore them."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def synchronize(self, *others: object) -> None:
        """Return at once: all work is always finished."""

    record = wait = wait_stream = wait_event = synchronize


def load() -> None:
    """Load the simulated device, then torch, which looks for a device once."""
    if "torch" in sys.modules:
        raise RuntimeError("the simulated device must be loaded before torch is imported")
    ctypes.CDLL(str(library()), mode=ctypes.RTLD_GLOBAL)
    import torch

    cuda = torch.cuda
    default = torch.ops.simulated_gpu.default_generator()
    answers: dict[str, Any] = {
        "is_available": True,
        "is_initialized": True,
        "_lazy_init": None,
        "device_count": 1,
        "current_device": 0,
        "set_device": None,
        "synchronize": None,
        "get_device_name": Properties.name,
        "get_device_capability": (Properties.major, Properties.minor),
        "get_device_properties": Properties(),
        "is_bf16_supported": True,
        "is_current_stream_capturing": False,
        "empty_cache": None,
        "current_stream": Nothing(),
        "default_stream": Nothing(),
    }
    for name, answer in answers.items():
        setattr(cuda, name, lambda *arguments, answer=answer, **options: answer)
    for name in ("Event", "Stream", "device", "device_of", "stream"):
        setattr(cuda, name, Nothing)
    cuda.default_generators = (default,)
    cuda.manual_seed = cuda.manual_seed_all = default.manual_seed
    cuda.get_rng_state = lambda device=None: default.get_state()
    cuda.set_rng_state = lambda state, device=None: default.set_state(state)
    let_copies_be_deep(torch.Tensor)


def let_copies_be_deep(tensor: Any) -> None:
    """Make deep copies of tensors on the device by ``clone``: torch would copy the storage, which needs CUDA."""
    of_torch = tensor.__deepcopy__

    def copied(self: Any, memo: dict[int, Any]) -> Any:
        if self.device.type != "cuda":
            return of_torch(self, memo)
        return memo.setdefault(id(self), self.detach().clone().requires_grad_(self.requires_grad))

    tensor.__deepcopy__ = copied


def counts() -> Counter[str]:
    """Return how often each operation of ``COUNTED`` was counted since the process began."""
    import torch

    return Counter(dict(zip(COUNTED, torch.ops.simulated_gpu.counts(), strict=True)))


TOLD: pytest.StashKey[Counter[str]] = pytest.StashKey()
"""What had been counted when the last test ended."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option ``--simulated-mode``."""
    parser.addoption("--simulated-mode", choices=tuple(MODES), default="plain", help="arithmetic of the simulated GPU")


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Load the device before a conftest imports torch."""
    mode = MODES[early_config.known_args_namespace.simulated_mode]
    if mode.tf32:
        os.environ["TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"] = "1"
    try:
        load()
    except RuntimeError as error:
        raise pytest.UsageError(str(error)) from None
    import torch

    torch.ops.simulated_gpu.set_modes(mode.reordered, mode.fused)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Add the operations counted since the last report to the last report of a test."""
    if call.when == "teardown":
        told = item.config.stash.get(TOLD, Counter())
        item.config.stash[TOLD] = counts()
        item.user_properties.append(("simulated_gpu", dict(item.config.stash[TOLD] - told)))
    return (yield)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Write the counts of the run, over all processes of pytest-xdist, and the tests that launch the most kernels."""
    by_test: dict[str, Counter[str]] = {}
    for report in (report for reports in terminalreporter.stats.values() for report in reports):
        if getattr(report, "when", None) == "teardown":
            asked = dict(report.user_properties)["simulated_gpu"]
            by_test.setdefault(report.nodeid.partition("[")[0], Counter()).update(asked)
    total = sum(by_test.values(), Counter())
    terminalreporter.section(f"simulated GPU, {config.getoption('--simulated-mode')}")
    terminalreporter.write_line(", ".join(f"{total[name]} {name}" for name in COUNTED))
    for test in sorted(by_test, key=lambda name: -by_test[name]["launches"])[:DEAREST]:
        asked = by_test[test]
        terminalreporter.write_line(f"{asked['launches']:>10} {asked['synchronisations']:>8}  {test}")
