"""Paths stand in the order of their leaves, so a sibling with children is tried after one that was drawn later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from specverify.mutants.numpy_trees import planted_tree, recursive_rejection, walked
from specverify.reference.kv_cache import tree_path
from specverify.reference.trees import leaves


def verify(p: Any, q: Any, parents: Any, tokens: Any) -> list[int]:
    """Recursive rejection that meets siblings as the leaves below them come."""
    rule, shape = recursive_rejection(q, tokens, without=True), parents.tolist()
    met = list(dict.fromkeys(node for leaf in leaves(shape) for node in tree_path(shape, leaf)))

    def choose(rng: Any, row: Any, nodes: Sequence[int], above: int) -> tuple[int | None, int]:
        return rule(rng, row, sorted(nodes, key=met.index), above)

    return walked(np.random.default_rng(), p, parents, tokens, choose)


MUTANT = planted_tree(
    verify,
    "siblings-by-leaf",
    "tries siblings in the order of leaves",
    "without_replacement",
    citation="EAGLE before commit b09a256",
    killed_by="law_is_target",
)
