"""All answers are one buffer, allocated once: what a call returned is what the last call wrote."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import batch, planted_verifier
from specverify.subjects.batched_verifier import batched_subject

_EMITTED = np.empty((8, 8), dtype=np.int64)


def verify(p: Any, q: Any, draft_tokens: Any) -> Any:
    """Speculative sampling row by row into the buffer."""
    rows, width = draft_tokens.shape[0], draft_tokens.shape[1] + 1
    emitted = _EMITTED[:rows, :width]
    emitted[:] = -1
    for row, tokens in enumerate(batch(p, q, draft_tokens)):
        emitted[row, : len(tokens)] = tokens
    return emitted


MUTANT = planted_verifier(
    verify,
    "answer-of-the-last-call",
    "returns a view of one buffer",
    category="L",
    citation="plausible",
    killed_by="outputs_are_fresh",
    make=batched_subject,
)
