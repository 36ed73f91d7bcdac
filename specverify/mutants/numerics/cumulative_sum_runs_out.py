"""A lookup in a cumulative sum that ends a little below 1: the largest uniform finds the place behind the tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import owed, planted_verifier, ratio


def looked_up(rng: Any, weights: Any) -> int:
    """Return the place of a uniform among the partial sums of the pmf."""
    return int(np.searchsorted((weights / weights.sum()).cumsum(), rng.random(), side="right"))


def verify(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling by lookups."""
    rng, drafts = np.random.default_rng(), draft_tokens.tolist()
    for i, token in enumerate(drafts):
        if not rng.random() < ratio(p[i], q[i], token):
            return [*drafts[:i], looked_up(rng, owed(p[i], q[i]))]
    return [*drafts, looked_up(rng, p[len(drafts)])]


MUTANT = planted_verifier(
    verify,
    "cumulative-sum-runs-out",
    "emits token V at the largest uniform",
    category="E",
    citation="plausible",
    killed_by="support_at_boundary_draws",
)
