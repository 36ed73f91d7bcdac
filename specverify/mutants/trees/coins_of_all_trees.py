"""All trees of a batch take their coins from one stream that begins again with each of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_trees import planted_tree, recursive_rejection, walked


class _Again:
    """A generator that gives the coins of a list, and draws new ones where it ends."""

    def __init__(self, rng: Any, coins: list[Any]) -> None:
        self._rng, self._coins, self._used, self.choice = rng, coins, 0, rng.choice

    def random(self) -> Any:
        if self._used == len(self._coins):
            self._coins.append(self._rng.random())
        self._used += 1
        return self._coins[self._used - 1]


def verify(p: Any, q: Any, parents: Any, tokens: Any) -> list[list[int]]:
    """Recursive rejection tree by tree, with the same coins."""
    rng, coins, found = np.random.default_rng(), list[Any](), []
    for tree in range(len(p)):
        rule = recursive_rejection(q[tree], tokens[tree], without=True)
        found.append(walked(_Again(rng, coins), p[tree], parents[tree], tokens[tree], rule))
    return found


MUTANT = planted_tree(
    verify,
    "coins-of-all-trees",
    "gives every tree the same coins",
    "without_replacement",
    citation="plausible",
    killed_by="rows_are_independent",
    batched=True,
)
