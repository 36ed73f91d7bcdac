"""Ratios of the whole row are infinite or NaN where q is 0; the one that is read belongs to a token that was drawn."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from specverify.mutants.mutant import Control
from specverify.mutants.numpy_verifiers import drawn, owed
from specverify.subjects.verifier import verifier_subject


def verify(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling by a table of ratios."""
    rng, drafts = np.random.default_rng(), draft_tokens.tolist()
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = p[:-1] / q
    for i, token in enumerate(drafts):
        if not rng.random() < ratios[i, token]:
            return [*drafts[:i], drawn(rng, owed(p[i], q[i]))]
    return [*drafts, drawn(rng, p[-1])]


CONTROL = Control(
    "infinite-ratio",
    "divides by a q of 0",
    "plausible",
    partial(verifier_subject, verify, "control:infinite-ratio", (1,)),
)
