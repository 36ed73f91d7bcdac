"""One uniform decides every position of a block: what kept the first draft keeps the second."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import drawn, excess, planted_verifier, ratio


def verify(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling with one coin."""
    rng, drafts = np.random.default_rng(), draft_tokens.tolist()
    coin = rng.random()
    for i, token in enumerate(drafts):
        if not coin < ratio(p[i], q[i], token):
            return [*drafts[:i], drawn(rng, excess(p[i], q[i]))]
    return [*drafts, drawn(rng, p[-1])]


MUTANT = planted_verifier(
    verify,
    "one-uniform-a-round",
    "uses one coin for all positions",
    category="D",
    citation="plausible",
    killed_by="draws_are_independent",
)
