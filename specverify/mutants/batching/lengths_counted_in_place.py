"""The number of drafts is turned into a number of rows in the caller's array, and read again as what it was."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import decided, planted_verifier


def verify(p: Any, q: Any, draft_tokens: Any, lengths: Any) -> list[list[int]]:
    """Speculative sampling whose bonus row is one behind, in an array that is an alias."""
    rng, found = np.random.default_rng(), []
    rows = lengths
    rows += 1
    for row, n in enumerate(lengths):
        last = min(int(n), p.shape[1] - 1)
        drafts = draft_tokens[row, : rows[row] - 1].tolist()
        found.append(decided(rng, np.concatenate([p[row, : len(drafts)], p[row, last:]]), q[row], drafts))
    return found


MUTANT = planted_verifier(
    verify,
    "lengths-counted-in-place",
    "adds 1 to an alias of the lengths",
    category="L",
    citation="xLLM PR #1228 (f6052f64f); mlx-lm commit 1898164b (branch)",
    killed_by="law_is_target",
    gammas=(1,),
)
