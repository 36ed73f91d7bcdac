"""The recovery of an n-gram draft zeroes the draft in the caller's table of p, which is read again later."""

from __future__ import annotations

import numpy as np

from specverify.mutants.numpy_verifiers import drawn
from specverify.mutants.small_engine import HORIZON, PROMPT, BigramTables, TableEngine, planted_engine
from specverify.subjects.subject import Forward


def engine_of(*, copied: bool) -> TableEngine:
    """Return the engine that drafts the most probable token of q and recovers from p without it."""

    def engine(tables: BigramTables, forwards: list[Forward]) -> list[int]:
        rng, text = np.random.default_rng(), list(PROMPT)
        for _ in range(HORIZON):
            draft = int(tables.draft[text[-1]].argmax())
            forwards.append(Forward(len(text) - 1, (text[-1], draft)))
            p = tables.target[text[-1]].copy() if copied else tables.target[text[-1]]
            if rng.random() < p[draft]:
                text.append(draft)
                continue
            p[draft] = 0
            text.append(drawn(rng, p))
        return text[len(PROMPT) :]

    return engine


MUTANT = planted_engine(
    engine_of(copied=False),
    "recovery-in-place",
    "zeroes p(d) in the caller's table",
    category="C",
    citation="vllm-ascend PR #2881 (b499417ad9)",
    killed_by="inputs_unchanged",
    control=engine_of(copied=True),
)
