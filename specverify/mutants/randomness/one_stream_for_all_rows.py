"""Requests without a seed share one uniform for the token after the last draft: each is right, and they agree."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import decided, planted_verifier
from specverify.subjects.batched_verifier import batched_subject


def verify(p: Any, q: Any, draft_tokens: Any) -> list[list[int]]:
    """Speculative sampling with one bonus uniform for the batch."""
    rng = np.random.default_rng()
    uniform, found = rng.random(), []
    for row, drafts in enumerate(draft_tokens.tolist()):
        *stayed, last = decided(rng, p[row], q[row], drafts)
        if len(stayed) == len(drafts):
            cumulative = p[row, -1].cumsum()
            last = int(np.searchsorted(cumulative / cumulative[-1], uniform, side="right"))
        found.append([*stayed, last])
    return found


MUTANT = planted_verifier(
    verify,
    "one-stream-for-all-rows",
    "gives all rows one bonus uniform",
    category="D",
    citation="TensorRT-LLM issue #19487",
    killed_by="rows_are_independent",
    gammas=(1,),
    make=batched_subject,
)
