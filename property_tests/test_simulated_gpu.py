"""The simulated CUDA device finds its sources and the tested version of torch in the checkout."""

from __future__ import annotations

from pathlib import Path

from tools.simulated_gpu import compiled

ROOT = Path(__file__).parents[1]


def test_the_device_is_made_for_the_torch_of_the_constraints():
    assert f"\ntorch=={compiled.tested_torch()}\n" in (ROOT / "constraints.txt").read_text("utf-8")


def test_its_sources_exist():
    assert len(compiled.SOURCES) > 1
    assert all(source.is_file() for source in compiled.SOURCES)
