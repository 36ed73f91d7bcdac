"""The token after the last draft comes from the last row of the padded batch: right for the longest row alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import decided, planted_verifier


def verify(p: Any, q: Any, draft_tokens: Any, lengths: Any) -> list[list[int]]:
    """Speculative sampling with the bonus row of the longest."""
    rng, found = np.random.default_rng(), []
    for row, n in enumerate(lengths):
        rows = np.concatenate([p[row, :n], p[row, -1:]])
        found.append(decided(rng, rows, q[row], draft_tokens[row, :n].tolist()))
    return found


MUTANT = planted_verifier(
    verify,
    "bonus-of-the-longest-row",
    "draws the bonus from a padded row",
    category="L",
    citation="plausible",
    killed_by="law_is_target",
    gammas=(1,),
)
