"""Kernels of installed engines: compiled where torch sees a GPU, under Triton's interpreter where not."""

from __future__ import annotations

import os

import pytest
import torch

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")
    os.environ["CUDA_VISIBLE_DEVICES"] = ""


@pytest.fixture(scope="session")
def device() -> torch.device:
    """The GPU, if there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.fixture(scope="session")
def quick() -> bool:
    """Whether rows are decided one at a time, a hundred a second."""
    return not torch.cuda.is_available()
