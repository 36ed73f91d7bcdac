"""A batch of trees of several shapes is walked by the parents of the first one."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_trees import in_batch, planted_tree, top_k


def verify(p: Any, q: Any, parents: Any, tokens: Any) -> list[list[int]]:
    """A draw from p looked up among the candidates of another shape."""
    decided: list[list[int]] = in_batch(top_k)(p, q, np.broadcast_to(parents[0], parents.shape), tokens)
    return decided


MUTANT = planted_tree(
    verify,
    "shape-of-the-first-tree",
    "gives all trees the first one's parents",
    "top_k",
    citation="plausible",
    killed_by="law_is_target",
    batched=True,
)
