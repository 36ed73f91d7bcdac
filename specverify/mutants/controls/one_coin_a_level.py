"""One uniform for all children of a node: compared with the sums of p along them, it is one draw from p."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from specverify.mutants.mutant import Control
from specverify.mutants.numpy_trees import TREES, walked
from specverify.mutants.numpy_verifiers import drawn
from specverify.subjects.tree_verifier import tree_subject


def verify(p: Any, q: Any, parents: Any, tokens: Any) -> list[int]:
    """A scan of the candidates, and a draw from what p has beside them if it finds none."""

    def choose(rng: Any, row: Any, nodes: Sequence[int], above: int) -> tuple[int | None, int]:
        coin, sought, rest = rng.random(), 0.0, row.copy()
        for node in nodes:
            sought += row[tokens[node]]
            rest[tokens[node]] = 0
            if coin < sought:
                return node, -1
        return None, drawn(rng, rest if rest.any() else row)

    return walked(np.random.default_rng(), p, parents, tokens, choose)


CONTROL = Control(
    "one-coin-a-level",
    "compares one uniform with every sibling",
    "SGLang tree_speculative_sampling_target_only",
    partial(tree_subject, verify, "control:one-coin-a-level", "top_k", (TREES["top_k"],)),
)
