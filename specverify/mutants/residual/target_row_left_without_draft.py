"""The recovery of a rejected draft takes it out of the caller's own p, which is read again later."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import drawn, owed, planted_verifier, ratio


def verify(p: Any, q: Any, draft_tokens: Any, lengths: Any) -> list[list[int]]:
    """Speculative sampling that leaves p[row, i, draft] = 0 behind."""
    rng, found = np.random.default_rng(), []
    for row, count in enumerate(lengths.tolist()):
        drafts = draft_tokens[row, :count].tolist()
        kept = [rng.random() < ratio(p[row, i], q[row, i], token) for i, token in enumerate(drafts)]
        n = kept.index(False) if False in kept else count
        weights = owed(p[row, n], q[row, n]) if n < count else p[row, n]
        found.append([*drafts[:n], drawn(rng, weights)])
        if n < count:
            p[row, n, drafts[n]] = 0
    return found


MUTANT = planted_verifier(
    verify,
    "target-row-left-without-draft",
    "writes into the caller's p",
    category="C",
    citation="vllm-ascend PR #2881 (b499417ad9)",
    killed_by="inputs_unchanged",
)
