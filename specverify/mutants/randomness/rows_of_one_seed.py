"""Every row makes a generator of its own from one seed, a copy: all rows are decided alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import excess, planted_verifier, ratio
from specverify.subjects.batched_verifier import batched_subject

SEED = 7


def looked_up(uniform: Any, weights: Any) -> int:
    """Return a token by inverse CDF."""
    cumulative = weights.cumsum() / weights.sum()
    return min(int(np.searchsorted(cumulative, uniform, side="right")), int(np.flatnonzero(weights)[-1]))


def decide(rng: Any, p: Any, q: Any, drafts: list[int]) -> list[int]:
    """Speculative sampling by uniforms alone."""
    for i, token in enumerate(drafts):
        if not rng.random() < ratio(p[i], q[i], token):
            return [*drafts[:i], looked_up(rng.random(), excess(p[i], q[i]))]
    return [*drafts, looked_up(rng.random(), p[len(drafts)])]


def verify(p: Any, q: Any, draft_tokens: Any) -> list[list[int]]:
    """Decide each row from the beginning of the stream."""
    rows = zip(p, q, draft_tokens.tolist(), strict=True)
    return [decide(np.random.default_rng(SEED), *row) for row in rows]


def control(p: Any, q: Any, draft_tokens: Any) -> list[list[int]]:
    """Decide all rows from one stream."""
    rng = np.random.default_rng(SEED)
    return [decide(rng, *row) for row in zip(p, q, draft_tokens.tolist(), strict=True)]


MUTANT = planted_verifier(
    verify,
    "rows-of-one-seed",
    "copies a generator for every row",
    category="D",
    citation="vLLM issue #6038, PR #6034",
    killed_by="rows_are_independent",
    control=control,
    gammas=(1,),
    make=batched_subject,
)
