"""Other people's code runs on the CPU here. Folders that need software of their own run in sessions of their own."""

from __future__ import annotations

import inspect
import textwrap

import pytest
from hypothesis import settings
from hypothesis.errors import InvalidArgument

collect_ignore = ["browser", "in_jax", "installed_kernels", "servers", "shipped"]
"""``nox -s report site jax kernels servers`` and ``nox -s pages -- shipped`` name these folders."""

try:
    settings.get_profile("thorough")
except InvalidArgument:
    settings.register_profile("thorough", max_examples=500)  # here it only says that every scenario is gone through


@pytest.fixture
def device():
    """The device that models are moved to."""
    import torch

    return torch.device("cpu")


@pytest.fixture
def planted(monkeypatch):
    """Replace lines in a function of the library, by its owner and name, for the length of a test."""

    def plant(owner, name, *lines):
        source = textwrap.dedent(inspect.getsource(getattr(owner, name)))
        for right, wrong in zip(lines[::2], lines[1::2], strict=True):
            assert right in source
            source = source.replace(right, wrong)
        namespace = dict(vars(inspect.getmodule(owner) or owner))
        exec(compile(source, f"planted_{name}.py", "exec"), namespace)
        monkeypatch.setattr(owner, name, namespace[name])

    return plant
