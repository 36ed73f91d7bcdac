"""Tests that run on the CPU and, with ``--device cuda``, on a GPU: real models and tensors, no model hub."""

from __future__ import annotations

import pytest
import torch


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", choices=("cpu", "cuda"), default="cpu", help="where models and tensors live")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--device") == "cuda" and not torch.cuda.is_available():
        pytest.exit("--device cuda was given but torch sees no CUDA device", returncode=2)


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Models this small run fastest on one thread, and far slower on two when the cores are busy."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> torch.device:
    return torch.device(request.config.getoption("--device"))
