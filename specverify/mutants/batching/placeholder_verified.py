"""The placeholder -1 is verified as a draft: it reads the entry of the last token of the vocabulary."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import decided, planted_verifier


def verify(p: Any, q: Any, draft_tokens: Any, lengths: Any) -> list[list[int]]:
    """Speculative sampling that stops at nothing but the width of the batch."""
    rng = np.random.default_rng()
    ids = np.where(draft_tokens < 0, p.shape[2] - 1, draft_tokens)
    found = [decided(rng, p[row], q[row], ids[row].tolist()) for row in range(len(p))]
    return [row[: n + 1] for row, n in zip(found, lengths, strict=True)]


MUTANT = planted_verifier(
    verify,
    "placeholder-verified",
    "judges -1 as the last token",
    category="M",
    citation="vllm-ascend issue #10045, PR #10043",
    killed_by="law_is_target",
    gammas=(1,),
)
