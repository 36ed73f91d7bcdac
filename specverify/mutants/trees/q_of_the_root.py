"""Every level is verified with the q that the children of the root were drawn from."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_trees import planted_tree, without_replacement


def verify(p: Any, q: Any, parents: Any, tokens: Any) -> list[int]:
    """Recursive rejection with the first row of q."""
    return without_replacement(p, np.broadcast_to(q[0], q.shape), parents, tokens)


MUTANT = planted_tree(
    verify,
    "q-of-the-root",
    "takes the root's q at every level",
    "without_replacement",
    citation="plausible",
    killed_by="law_is_target",
)
