"""Random numbers come from a count of calls since the engine started: no request can be repeated."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import drawn, excess, planted_verifier, ratio

_CALLS = count(1)
GOLDEN = 0.6180339887498949


def verify(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling with coins from a counter."""
    rng, drafts = np.random.default_rng(), draft_tokens.tolist()
    for i, token in enumerate(drafts):
        if not next(_CALLS) * GOLDEN % 1 < ratio(p[i], q[i], token):
            return [*drafts[:i], drawn(rng, excess(p[i], q[i]))]
    return [*drafts, drawn(rng, p[-1])]


MUTANT = planted_verifier(
    verify,
    "counted-calls",
    "draws depend on how often it was called",
    category="D",
    citation="TensorRT-LLM PR #17599",
    killed_by="program_is_its_draws",
)
