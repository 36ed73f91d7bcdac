"""Tiny models: peaked, dependent on the whole context, and a law of float64."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from engine_tests.engines.huggingface.test_real_generate import name_of
from specverify.engines.huggingface.real_generate import (
    SETTINGS,
    EngineSetting,
    exact_law,
    law_of,
    next_token_pmfs,
)
from specverify.engines.huggingface.tiny_models import SAMPLED_ARCHITECTURES, TARGET_SEED, build_model, build_target


@pytest.mark.parametrize("architecture", SAMPLED_ARCHITECTURES)
def test_models_are_peaked_and_depend_on_the_whole_context(architecture: str, device: torch.device) -> None:
    """Over all contexts of 3 tokens: the median largest probability, and TV when one context token is changed."""
    target = build_model(architecture, 5, TARGET_SEED).to(device)
    contexts = list(product(range(5), repeat=3))
    setting = EngineSetting("T=1", architecture)
    pmfs = torch.tensor(next_token_pmfs(target, setting, contexts)).reshape(5, 5, 5, 5)
    assert pmfs.max(dim=-1).values.median() > 0.5
    for position in range(3):
        moved = (pmfs - pmfs.roll(1, dims=position)).clamp(min=0).sum(-1)
        assert moved.mean() > 0.1, f"context position {position}"


@pytest.mark.parametrize("setting", SETTINGS, ids=name_of)
def test_exact_law_is_a_law_and_does_not_hang_on_float32(setting: EngineSetting, device: torch.device) -> None:
    """A float64 model has the same support and masses: no truncation threshold is within rounding of a tie."""
    law = exact_law(setting)
    assert abs(sum(law.values()) - 1) < 1e-12
    assert 8 < len(law) <= 200
    assert all(len(new) == setting.horizon or new[-1] in setting.eos for new in law)
    precise = law_of(build_target(setting).to(device=device, dtype=torch.float64), setting)
    assert precise == pytest.approx(law, rel=1e-4, abs=1e-6)


def test_an_unknown_architecture_is_refused() -> None:
    with pytest.raises(ValueError, match="the architecture is 'mamba', expected one of llama, gpt2"):
        build_model("mamba", 5, seed=0)
