"""The walk goes on below the first node of a level that holds the accepted token, whatever that node hangs from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from specverify.mutants.numpy_trees import looked_up, planted_tree, walked
from specverify.reference.kv_cache import tree_depths


def verify(p: Any, q: Any, parents: Any, tokens: Any) -> list[int]:
    """A draw from p, found again by its token in all of the level."""
    rule, depths = looked_up(tokens), tree_depths(parents.tolist())

    def choose(rng: Any, row: Any, nodes: Sequence[int], above: int) -> tuple[int | None, int]:
        found, token = rule(rng, row, nodes, above)
        if found is None:
            return None, token
        return next(node for node in range(found + 1) if (depths[node], tokens[node]) == (depths[found], token)), token

    return walked(np.random.default_rng(), p, parents, tokens, choose)


MUTANT = planted_tree(
    verify,
    "children-by-token",
    "follows the path by token, not by node",
    "top_k",
    citation="plausible",
    killed_by="law_is_target",
)
