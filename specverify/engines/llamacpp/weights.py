"""The tiny Llama whose law is known, and its draft model: seeded weights, written as GGUF by ``make_models.py``."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from specverify.laws.llama import Llama, LlamaSizes, random_llama

SIZES: Final = LlamaSizes(vocabulary=8, positions=256)
SPREAD: Final = 2.0
LETTERS: Final = ("a", "b", "c", "d", "e", "f", "g", "</s>")
END: Final = 7
NOISE: Final = 0.1
"""Share of noise in the draft model's weights, with which about half of its tokens are accepted."""


@lru_cache(maxsize=1)
def target() -> Llama:
    """Return the target model, a tiny Llama with seeded weights."""
    return random_llama(1, SIZES, spread=SPREAD)


@lru_cache(maxsize=1)
def draft() -> Llama:
    """Return the draft model: the target with noise in every matrix."""
    ours, other = target(), random_llama(2, SIZES, spread=SPREAD)
    mixed = {
        name: (np.sqrt(1 - NOISE**2) * value + NOISE * other.weights[name]).astype(np.float32)
        if value.ndim == 2
        else value
        for name, value in ours.weights.items()
    }
    return Llama(SIZES, mixed)
