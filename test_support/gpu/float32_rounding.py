"""Vocabulary sizes and dtypes for laws on the device, and bounds on the float32 rounding error of a softmax.

Bounds are derived where they are used and stated with eps, twice the largest relative error u of one rounded operation:
the factor covers the higher orders.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

VOCABULARIES = (8191, 8192, 8193, 32_000, 128_256, 151_936)
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
EPS = torch.finfo(torch.float32).eps
BFLOAT16_ROUNDING = 2.0**-8
"""u of bfloat16: the relative error of storing a pmf in it."""
EXP_ULPS = 20
"""What ATen's vector headers promise of their fastest float32 exponential ("ULP=20"); CUDA's is good to 2."""


def weight_errors(logits: torch.Tensor, temperature: float) -> Any:
    """Bound the relative error of every float32 weight exp((l - max) / T), in whichever order it is computed.

    T is rounded, inverted and multiplied with: 3 u |l - max| / T in an exponent after a subtraction (u of it more), or
    3 u (|l| + |max|) / T in one before it. The exponential: 20 units in the last place, 40 u.
    """
    values = np.abs(logits.double().cpu().numpy())
    largest = float(logits.max())
    distance = np.abs(logits.double().cpu().numpy() - largest) / temperature
    return EPS * (3 * (values + abs(largest)) / temperature + 4 * distance + 2 * EXP_ULPS)
