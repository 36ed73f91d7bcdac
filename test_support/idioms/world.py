"""The names that the idioms of torch, NumPy and ``random`` use, for the rows of ``judged``."""

from __future__ import annotations

from collections import Counter
from functools import partial

import torch

from specverify.subjects.emitted import emitted_row
from specverify.subjects.seeded import seeded
from test_support.idioms.judged import DRAFTS, P, Q, distance_of


def once(idiom, verify):
    """Return the tokens that a sampler emits in one call."""
    arrays = P[: idiom.gamma + 1].copy(), Q[: idiom.gamma].copy(), DRAFTS[: idiom.gamma].copy()
    if "torch" in idiom.library:
        arrays = tuple(map(torch.from_numpy, arrays))
    return emitted_row(verify(*arrays), idiom.gamma)


def distance(idiom, verify):
    """Return the total variation between the law of a sampler and that of rejection sampling."""
    return distance_of(partial(once, idiom, verify), idiom.gamma)


def sample(idiom, verify, number, seed):
    """Return the counts of the rows that the sampler emits with its own random numbers."""
    with seeded(seed):
        return Counter(once(idiom, verify) for _ in range(number))
