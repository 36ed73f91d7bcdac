"""Draft and replacement each make a generator from (seed, position): the same numbers decide both."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import excess
from specverify.mutants.small_engine import HORIZON, PROMPT, BigramTables, TableEngine, models, planted_engine
from specverify.subjects.subject import Forward

SEED = 7


def tables() -> BigramTables:
    """Return models of which one draft is rejected for two tokens: what replaces it is a race."""
    target, draft = models()
    target[0], draft[0] = (0.25, 0.375, 0.375), (0.625, 0.125, 0.25)
    return BigramTables(target, draft)


def engine_of(offset: int) -> TableEngine:
    """Return the engine of gamma 1 whose replacement's stream is ``offset`` behind the draft's."""

    def raced(weights: Any, stream: int) -> int:
        return int((weights / np.random.default_rng([SEED, stream]).exponential(size=len(weights))).argmax())

    def engine(tables: BigramTables, forwards: list[Forward]) -> list[int]:
        coins, text = np.random.default_rng(), list(PROMPT)
        for position in range(HORIZON):
            p, q = tables.target[text[-1]], tables.draft[text[-1]]
            draft = raced(q, position)
            forwards.append(Forward(len(text) - 1, (text[-1], draft)))
            kept = coins.random() < p[draft] / q[draft]
            text.append(draft if kept else raced(excess(p, q), position + offset))
        return text[len(PROMPT) :]

    return engine


MUTANT = planted_engine(
    engine_of(0),
    "stream-of-the-position",
    "makes two generators of one seed and position",
    category="D",
    citation="vLLM PRs #54282, #47386; local-inference-lab/vllm #205, #653",
    killed_by="draws_are_independent",
    control=engine_of(HORIZON),
    tables=tables,
)
