"""Rows at temperature 0 return the place of their token in a sorted list of candidates as if it were its id."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import decided, planted_verifier
from specverify.subjects.batched_verifier import batched_subject


def verify(p: Any, q: Any, draft_tokens: Any) -> list[list[int]]:
    """Speculative sampling whose one-hot bonus rows are answered by a rank."""
    rng, found = np.random.default_rng(), []
    for row, drafts in enumerate(draft_tokens.tolist()):
        *stayed, last = decided(rng, p[row], q[row], drafts)
        if len(stayed) == len(drafts) and p[row].max(-1).min() == 1:
            last = int(np.sort(p[row, -1])[::-1].argmax())
        found.append([*stayed, last])
    return found


MUTANT = planted_verifier(
    verify,
    "argmax-of-candidates",
    "returns ranks as ids in greedy rows",
    category="L",
    citation="vllm-ascend issue #16396, PR #16430",
    killed_by="greedy_is_argmax",
    gammas=(1,),
    make=batched_subject,
)
