"""Seed the generators of foreign code while a sample is drawn, so that the sample can be repeated."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from specverify.intercept.cpython.patches import replaced


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """In the ``with`` block, seed ``random``, NumPy's legacy generator and torch; restore their states afterwards.

    ``np.random.default_rng()`` without a seed returns a generator derived from ``seed``, another one at each call. Not
    seeded: bit generators, ``RandomState`` and ``random.Random`` made without a seed, and a ``default_rng`` imported by
    name.
    """
    torch = sys.modules.get("torch")
    own, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002 - foreign code may use the legacy generator
    try:
        with torch.random.fork_rng(devices=[]) if torch else nullcontext():
            random.seed(seed)
            np.random.seed(seed % 2**32)  # noqa: NPY002 - as above
            if torch:
                _seed_torch(torch, seed)
            with replaced(np.random, {"default_rng": _fresh_generators(seed)}):
                yield
    finally:
        random.setstate(own)
        np.random.set_state(legacy)  # noqa: NPY002 - as above


def _seed_torch(torch: Any, seed: int) -> None:
    """Seed torch: all its generators, or only that of the CPU if there is no accelerator.

    Seeding the CPU generator alone saves a millisecond.
    """
    (torch.manual_seed if torch.accelerator.is_available() else torch.default_generator.manual_seed)(seed)


def _fresh_generators(seed: int) -> Any:
    library, sequence = np.random.default_rng, np.random.SeedSequence(seed)

    def default_rng(seed: Any = None) -> np.random.Generator:
        return library(sequence.spawn(1)[0] if seed is None else seed)

    return default_rng
