"""One uniform decides all children of a node, each against a ratio of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from specverify.mutants.numpy_trees import planted_tree, recursive_rejection, walked


class _Coin:
    """A generator whose coin is drawn once."""

    def __init__(self, rng: Any) -> None:
        self._coin, self.choice = rng.random(), rng.choice

    def random(self) -> Any:
        return self._coin


def verify(p: Any, q: Any, parents: Any, tokens: Any) -> list[int]:
    """Recursive rejection with one coin a level."""
    rule = recursive_rejection(q, tokens, without=False)

    def choose(rng: Any, row: Any, nodes: Sequence[int], above: int) -> tuple[int | None, int]:
        return rule(_Coin(rng), row, nodes, above)

    return walked(np.random.default_rng(), p, parents, tokens, choose)


MUTANT = planted_tree(
    verify,
    "one-coin-for-siblings",
    "decides all siblings by one uniform",
    "with_replacement",
    citation="plausible",
    killed_by="law_is_target",
)
