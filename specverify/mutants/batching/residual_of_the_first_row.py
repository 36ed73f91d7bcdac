"""What replaces a rejected draft comes from the residual of the batch's first row."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import decided, drawn, excess, planted_verifier
from specverify.subjects.batched_verifier import batched_subject


def verify(p: Any, q: Any, draft_tokens: Any) -> list[list[int]]:
    """Speculative sampling with one residual for the batch."""
    rng, found = np.random.default_rng(), []
    for row, drafts in enumerate(draft_tokens.tolist()):
        mine = decided(rng, p[row], q[row], drafts)
        place = len(mine) - 1
        if place < len(drafts) and excess(p[0, place], q[0, place]).any():
            mine[-1] = drawn(rng, excess(p[0, place], q[0, place]))
        found.append(mine)
    return found


MUTANT = planted_verifier(
    verify,
    "residual-of-the-first-row",
    "replaces by another row's residual",
    category="L",
    citation="plausible",
    killed_by="law_is_target",
    gammas=(1,),
    make=batched_subject,
)
