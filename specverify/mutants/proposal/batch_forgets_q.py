"""A row without drafts has no q, and so the whole batch is verified without it: exact, and accepted too rarely."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import decided, planted_verifier


def verify(p: Any, q: Any, draft_tokens: Any, lengths: Any) -> list[list[int]]:
    """Use q only if every row has some."""
    rng, vocabulary = np.random.default_rng(), p.shape[-1]
    if (lengths == 0).any():
        q = np.eye(vocabulary)[draft_tokens]
    return [decided(rng, p[row], q[row], draft_tokens[row, :n].tolist()) for row, n in enumerate(lengths)]


MUTANT = planted_verifier(
    verify,
    "batch-forgets-q",
    "drops q for all rows if one has none",
    category="B",
    citation="vllm-ascend commit f6c2314817",
    killed_by="acceptance_is_optimal",
    gammas=(1,),
)
