"""Benchmarks run on the CPU and, with ``--device cuda``, those of device code on a GPU."""

from __future__ import annotations

import contextlib

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    with contextlib.suppress(ValueError):  # gpu_tests has the same option, when both are given to one pytest
        parser.addoption("--device", choices=("cpu", "cuda"), default="cpu", help="where tensors live")
