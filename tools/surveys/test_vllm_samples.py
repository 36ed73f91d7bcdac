"""Samples of vLLM: each seed gives a sample of its own, also the first sample of a process.

Run by ``nox -s engines -- vllm``, where the engine is installed.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

import pytest

pytest.importorskip("vllm", reason="needs the engine: nox -s engines -- vllm")

import torch

from specverify.engines.vllm import adapter
from specverify.engines.vllm.asked import NARROW


def test_the_seed_of_a_sample_is_set_after_the_engine_is_made(monkeypatch):
    """A process makes its engine at its first sample, and making it seeds torch: all seeds gave the same sample."""
    made = cache(lambda way: torch.manual_seed(0))

    def text() -> SimpleNamespace:
        return SimpleNamespace(outputs=[SimpleNamespace(token_ids=torch.randint(8, (4,)).tolist())])

    monkeypatch.setattr(adapter, "engine", made)
    monkeypatch.setattr(adapter, "generate", lambda way, asked, _: [made(way), *(text() for _ in asked)][1:])
    samples = []
    for seed in (1, 2):
        made.cache_clear()
        samples.append(adapter.texts(adapter.EngineSetup(), NARROW)(seed, 5))
    assert samples[0] != samples[1]
