"""Candidates are gone through path by path, and a node that several paths share is tried once for each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from specverify.mutants.numpy_trees import planted_tree, recursive_rejection, walked
from specverify.reference.kv_cache import tree_path
from specverify.reference.trees import leaves


def verify(p: Any, q: Any, parents: Any, tokens: Any) -> list[int]:
    """Recursive rejection of every path's node, q subtracted again and again."""
    rule, shape = recursive_rejection(q, tokens, without=True), parents.tolist()
    shared = [node for path in sorted(tree_path(shape, leaf) for leaf in leaves(shape)) for node in path]

    def choose(rng: Any, row: Any, nodes: Sequence[int], above: int) -> tuple[int | None, int]:
        return rule(rng, row, [node for node in shared if node in nodes], above)

    return walked(np.random.default_rng(), p, parents, tokens, choose)


MUTANT = planted_tree(
    verify,
    "shared-node-tried-twice",
    "tries a node once for each path",
    "without_replacement",
    citation="EAGLE before commit b09a256",
    killed_by="law_is_target",
)
