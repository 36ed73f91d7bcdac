"""The walk tries the first child of a node only: what the others cost to draft and to verify is lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from specverify.mutants.numpy_trees import planted_tree, recursive_rejection, walked


def verify(p: Any, q: Any, parents: Any, tokens: Any) -> list[int]:
    """Recursive rejection without recursion."""
    rule = recursive_rejection(q, tokens, without=True)

    def choose(rng: Any, row: Any, nodes: Sequence[int], above: int) -> tuple[int | None, int]:
        return rule(rng, row, nodes[:1], above)

    return walked(np.random.default_rng(), p, parents, tokens, choose)


MUTANT = planted_tree(
    verify,
    "first-child-alone",
    "never tries a second child",
    "without_replacement",
    category="Q",
    citation="plausible",
    killed_by="acceptance_is_optimal",
)
