"""The seed of the request is set again at the start of every round: the first coins of all rounds are one number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import drawn, excess, ratio
from specverify.mutants.small_engine import engine_of, planted_engine

SEED = 7


def decide(rng: Any, p: Any, q: Any, drafts: Sequence[int]) -> list[int]:
    """Speculative sampling whose coins come from a stream that begins here."""
    coins = np.random.default_rng(SEED)
    for i, token in enumerate(drafts):
        if not coins.random() < ratio(p[i], q[i], token):
            return [*drafts[:i], drawn(rng, excess(p[i], q[i]))]
    return [*drafts, drawn(rng, p[len(drafts)])]


MUTANT = planted_engine(
    engine_of(decide),
    "seeded-every-round",
    "starts the coins' stream over each round",
    category="D",
    citation="plausible",
    killed_by="draws_are_independent",
    control=engine_of(),
)
