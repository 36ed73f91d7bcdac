"""Coins that were made one a token are read one a request: neighbouring rows share them."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import drawn, excess, planted_verifier
from specverify.subjects.batched_verifier import batched_subject


def verify(p: Any, q: Any, draft_tokens: Any) -> list[list[int]]:
    """Speculative sampling with coin ``row + i`` where ``row * gamma + i`` is meant."""
    rng, found = np.random.default_rng(), []
    coins = rng.random(draft_tokens.size + 1)
    for row, drafts in enumerate(draft_tokens.tolist()):
        n = next((i for i, t in enumerate(drafts) if not coins[row + i] * q[row, i, t] < p[row, i, t]), len(drafts))
        weights = excess(p[row, n], q[row, n]) if n < len(drafts) else p[row, n]
        found.append([*drafts[:n], drawn(rng, weights)])
    return found


MUTANT = planted_verifier(
    verify,
    "coins-of-tokens",
    "reads a row's coins at the row's number",
    category="L",
    citation="vLLM PR #35398 (review)",
    killed_by="rows_are_independent",
    gammas=(2,),
    make=batched_subject,
)
