"""Answers are put back as if rows without drafts came first in the batch: rows get each other's tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import decided, planted_verifier


def verify(p: Any, q: Any, draft_tokens: Any, lengths: Any) -> list[list[int]]:
    """Verify rows without drafts, then the others, and return them in that order."""
    rng = np.random.default_rng()
    order = sorted(range(len(p)), key=lambda row: lengths[row] > 0)
    found = [decided(rng, p[row], q[row], draft_tokens[row, : lengths[row]].tolist()) for row in order]
    return [row[: n + 1] for row, n in zip(found, lengths, strict=True)]


MUTANT = planted_verifier(
    verify,
    "rows-in-assumed-order",
    "returns rows in the order it expects",
    category="L",
    citation="HabanaAI/vllm-fork PR #1780",
    killed_by="law_is_target",
    gammas=(1,),
)
