"""Emitted tokens in a buffer of floats: whole numbers all the same, which float64 and float32 hold as they are."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from specverify.mutants.mutant import Control
from specverify.mutants.numpy_verifiers import ragged
from specverify.subjects.batched_verifier import batched_subject


def verify(p: Any, q: Any, draft_tokens: Any, lengths: Any) -> Any:
    """Speculative sampling of rows into an array of zeros, whose type nobody chose."""
    emitted = np.zeros((len(p), p.shape[1])) - 1
    for row, tokens in enumerate(ragged(p, q, draft_tokens, lengths)):
        emitted[row, : len(tokens)] = tokens
    return emitted


CONTROL = Control(
    "tokens-in-floats",
    "returns token ids as floats",
    "plausible",
    partial(batched_subject, verify, "control:tokens-in-floats", (1,)),
)
