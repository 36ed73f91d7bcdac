"""Noise is written into a copy that advanced indexing made, so the race is run over ones: the mode comes out."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import excess, planted_verifier, ratio
from specverify.subjects.batched_verifier import batched_subject


def verify(p: Any, q: Any, draft_tokens: Any) -> list[list[int]]:
    """Speculative sampling whose rows' exponential noise stays 1."""
    rng, gamma = np.random.default_rng(), draft_tokens.shape[1]
    noise = np.ones((len(p), p.shape[2]))
    unseeded = np.arange(len(p))
    noise[unseeded][:] = 2.0  # the rows' own noise, lost at once
    found = []
    for row, drafts in enumerate(draft_tokens.tolist()):
        coins = [rng.random() < ratio(p[row, i], q[row, i], token) for i, token in enumerate(drafts)]
        n = coins.index(False) if False in coins else gamma
        weights = excess(p[row, n], q[row, n]) if n < gamma else p[row, n]
        found.append([*drafts[:n], int((weights / noise[row]).argmax())])
    return found


MUTANT = planted_verifier(
    verify,
    "noise-never-filled",
    "races over noise that was never drawn",
    category="D",
    citation="vLLM issue #9441, PR #10863",
    killed_by="law_is_target",
    gammas=(1,),
    make=batched_subject,
)
