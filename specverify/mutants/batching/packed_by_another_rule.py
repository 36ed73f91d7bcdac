"""Rows are packed by their own lengths and unpacked by the longest one: behind a shorter row everything is shifted."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import decided, owed, planted_verifier


def verify(p: Any, q: Any, draft_tokens: Any, lengths: Any) -> list[list[int]]:
    """Pack the drafts of all rows, take them out again in equal parts."""
    rng, width = np.random.default_rng(), int(max(lengths))
    packed = np.concatenate([draft_tokens[row, :n] for row, n in enumerate(lengths)])
    packed = np.concatenate([packed, np.zeros(len(p) * width - len(packed), dtype=int)])
    found = []
    for row, n in enumerate(lengths):
        drafts = packed[row * width : row * width + n].tolist()
        found.append(decided(rng, p[row], q[row], drafts, accept=lambda p, q, t: p[t] / max(q[t], 1e-9), weights=owed))
    return found


MUTANT = planted_verifier(
    verify,
    "packed-by-another-rule",
    "packs ragged rows, unpacks equal ones",
    category="L",
    citation="vLLM PR #52500",
    killed_by="law_is_target",
    gammas=(1,),
)
