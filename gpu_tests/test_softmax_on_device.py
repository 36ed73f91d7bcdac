"""Softmax kernels on the device at real vocabularies, against float64: entries, and the law that is drawn from them.

``pytest -rP`` shows the figures.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
import torch

from reference import softmax
from test_support.gpu.batches import tell
from test_support.gpu.float32_rounding import BFLOAT16_ROUNDING, DTYPES, EPS, VOCABULARIES, weight_errors

Kernel = Callable[[torch.Tensor, float], torch.Tensor]
PMF_KERNELS: dict[str, Kernel] = {
    "reference": lambda logits, temperature: softmax(logits.float(), temperature),
    "torch": lambda logits, temperature: torch.softmax(logits.float() / temperature, dim=-1),
}


def float64_softmax(logits: torch.Tensor, temperature: float) -> Any:
    scaled = logits.double().cpu().numpy() / temperature
    weights = np.exp(scaled - scaled.max())
    return weights / weights.sum()


def drawn_distance(found: torch.Tensor, exact: Any) -> float:
    """Return the total variation from ``exact`` to the law that the inverse CDF draws from the weights ``found``.

    The inverse CDF multiplies u with the total, so a common factor of the weights has no effect.
    """
    values = found.double().cpu().numpy()
    return float(np.abs(values / values.sum() - exact).sum() / 2)


def random_logits(size: int, seed: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.tensor(np.random.default_rng([seed, size]).normal(0, 3, size), dtype=dtype, device=device)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
@pytest.mark.parametrize("temperature", [0.7, 1.0])
@pytest.mark.parametrize("kernel", PMF_KERNELS)
@pytest.mark.parametrize("size", VOCABULARIES)
def test_softmax_in_float32(
    size: int, kernel: str, temperature: float, dtype: torch.dtype, device: torch.device
) -> None:
    """An entry: its weight, the sum's own n u and mean weight error, a division. The law: weight errors and a division.

    With p' = p (1 + d) / (1 + mean of d), TV = sum p |d - mean d| / 2 <= sum p |d|.
    """
    logits = random_logits(size, 0, dtype, device)
    found, exact = PMF_KERNELS[kernel](logits, temperature), float64_softmax(logits, temperature)
    errors = weight_errors(logits, temperature)
    mean = float((exact * errors).sum())
    relative = np.abs(found.double().cpu().numpy() - exact) / exact
    tell(
        f"largest error {relative.max() / EPS:.1f} eps, TV drawn {drawn_distance(found, exact):.1e} <= {mean + EPS:.1e}"
    )
    assert found.dtype == torch.float32
    assert (relative <= errors + mean + (size + 3) * EPS).all()
    assert drawn_distance(found, exact) <= mean + EPS
    planted = PMF_KERNELS[kernel](logits, temperature * 1.001)
    assert drawn_distance(planted, exact) > mean + EPS


@pytest.mark.parametrize("size", VOCABULARIES)
def test_softmax_stored_in_bfloat16(size: int, device: torch.device) -> None:
    """The kernel computes in float32 and rounds once: u of bfloat16 more, in an entry and in the law."""
    logits = random_logits(size, 1, torch.bfloat16, device)
    found, exact = torch.softmax(logits, dim=-1), float64_softmax(logits, 1.0)
    bound = float((exact * weight_errors(logits, 1.0)).sum()) + EPS + BFLOAT16_ROUNDING * (1 + 2 * BFLOAT16_ROUNDING)
    tell(f"TV drawn {drawn_distance(found, exact):.1e} <= {bound:.1e}")
    assert found.dtype == torch.bfloat16
    assert drawn_distance(found, exact) <= bound
    assert drawn_distance(torch.softmax(logits * 1.125, dim=-1), exact) > bound


def test_float64_softmax_is_the_exact_one(device: torch.device) -> None:
    """What the others are measured with, against 60 decimal digits; the bound is that of ``test_pmfs_on_device``."""
    logits, temperature = random_logits(300, 2, torch.bfloat16, device), 0.7
    with localcontext() as context:
        context.prec = 60
        scaled = [(Decimal(value) - Decimal(float(logits.max()))) / Decimal(temperature) for value in logits.tolist()]
        weights = [value.exp() for value in scaled]
        exact = np.array([float(weight / sum(weights)) for weight in weights])
    largest = float(max(abs(value) for value in scaled))
    assert (
        np.abs(float64_softmax(logits, temperature) / exact - 1).max() <= (3 * largest + 5 + 300) * np.finfo(float).eps
    )
