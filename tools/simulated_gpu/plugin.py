"""``pytest -p tools.simulated_gpu.plugin gpu_tests --device cuda``: a CUDA device where there is no GPU.

``--simulated-mode`` says how its arithmetic differs from the CPU's. The summary tells what a GPU would have been asked:
kernels launched, waits of the host for the device, copies to it, and factors of products rounded to TF32.
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
    """What programs read about a device."""

    name, major, minor, multi_processor_count, warp_size = "simulated", 9, 0, 132, 32
    total_memory = 80 * 2**30


class Nothing:
    """A stream or an event on a device that has always finished."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Take whatever the real ones take."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def synchronize(self, *others: object) -> None:
        """Do nothing, as all that is done here: there is nothing to wait for."""

    record = wait = wait_stream = wait_event = synchronize


def load() -> None:
    """Load the device, which torch looks for once, and then torch."""
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
    """Copy tensors of the device by ``clone``: torch copies storages, which only a build with CUDA makes there."""
    of_torch = tensor.__deepcopy__

    def copied(self: Any, memo: dict[int, Any]) -> Any:
        if self.device.type != "cuda":
            return of_torch(self, memo)
        return memo.setdefault(id(self), self.detach().clone().requires_grad_(self.requires_grad))

    tensor.__deepcopy__ = copied


def counts() -> Counter[str]:
    """What has been counted since the process began, by the names of ``COUNTED``."""
    import torch

    return Counter(dict(zip(COUNTED, torch.ops.simulated_gpu.counts(), strict=True)))


TOLD: pytest.StashKey[Counter[str]] = pytest.StashKey()
"""What had been counted when the last test ended."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--simulated-mode", choices=tuple(MODES), default="plain", help="arithmetic of the simulated GPU")


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Make the device before a conftest imports torch."""
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
    """Hand over, with a test's last report, what the device has been asked since the last report of another test."""
    if call.when == "teardown":
        told = item.config.stash.get(TOLD, Counter())
        item.config.stash[TOLD] = counts()
        item.user_properties.append(("simulated_gpu", dict(item.config.stash[TOLD] - told)))
    return (yield)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Write the counts of the run, of all processes of pytest-xdist, and the tests that launch most kernels."""
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
