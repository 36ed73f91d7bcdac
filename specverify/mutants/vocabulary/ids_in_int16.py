"""Recovered token ids go through a buffer of int16: those above 32767 come out as others, or as placeholders."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import at_large, one_row, planted_verifier


def verify(p: Any, q: Any, draft_tokens: Any) -> Any:
    """Speculative sampling with a buffer that is too small for its last token."""
    emitted = np.array(one_row(p, q, draft_tokens))
    emitted[-1:] = emitted[-1:].astype(np.int16)
    return emitted


MUTANT = planted_verifier(
    verify,
    "ids-in-int16",
    "keeps recovered ids in 16 bits",
    category="N",
    citation="plausible",
    killed_by="call_law",
    make=at_large,
)
