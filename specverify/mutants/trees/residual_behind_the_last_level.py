"""Where a leaf was accepted after its sibling was rejected, the token behind it comes from that row's residual."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_trees import below, planted_tree
from specverify.mutants.numpy_verifiers import drawn


def verify(p: Any, q: Any, parents: Any, tokens: Any) -> list[int]:
    """Candidates as point masses, each tried in turn."""
    rng, node, kept, rejected = np.random.default_rng(), -1, list[int](), False
    left = p[0]
    while children := below(parents, node):
        left, found, rejected = p[1 + node], None, False
        for child in children:
            if rng.random() < left[tokens[child]]:
                found = child
                break
            left, rejected = left * (np.arange(len(left)) != tokens[child]), True
            left = left / left.sum()
        if found is None:
            return [*kept, drawn(rng, left)]
        kept.append(int(tokens[found]))
        node = found
    return [*kept, drawn(rng, left if rejected else p[1 + node])]


MUTANT = planted_tree(
    verify,
    "residual-behind-the-last-level",
    "draws the bonus from an earlier residual",
    "top_k",
    citation="EAGLE commits 2f982e2 to 61020ed; modeling_eagle.py:1448 at cb7e084",
    killed_by="law_is_target",
)
