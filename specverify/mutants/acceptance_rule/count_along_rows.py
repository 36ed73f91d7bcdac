"""The first rejection is searched along the batch instead of along the positions: the count belongs to nobody."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import drawn, excess, planted_verifier
from specverify.subjects.batched_verifier import batched_subject


def verify(p: Any, q: Any, draft_tokens: Any) -> list[list[int]]:
    """All coins at once, the cumulative product over axis 0."""
    rng, gamma = np.random.default_rng(), draft_tokens.shape[1]
    coins = [
        [rng.random() < a[t] / b[t] for a, b, t in zip(*row, strict=False)]
        for row in zip(p, q, draft_tokens, strict=True)
    ]
    counts = np.array(coins, dtype=int).cumprod(axis=0).sum(axis=1)
    found = []
    for row, n in enumerate(counts.tolist()):
        rest = excess(p[row, n], q[row, n]) if n < gamma else p[row, n]
        found.append([*draft_tokens[row, :n].tolist(), drawn(rng, rest if rest.sum() else p[row, n])])
    return found


MUTANT = planted_verifier(
    verify,
    "count-along-rows",
    "finds the first rejection along the wrong axis",
    category="A",
    citation="lucidrains/speculative-decoding commit a536030",
    killed_by="law_is_target",
    gammas=(1,),
    make=batched_subject,
)
