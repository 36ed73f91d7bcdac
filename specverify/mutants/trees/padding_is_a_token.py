"""Short paths are padded with token 0: where the target wants 0 behind a leaf, the padding is accepted as a draft.

The token is right by luck. What follows it is read at row -1, which is the last node's.
"""

from __future__ import annotations

from typing import Any

from specverify.mutants.numpy_trees import along_paths, greedy, planted_tree
from specverify.reference import Claim


def verify(p: Any, q: Any, parents: Any, tokens: Any) -> list[int]:
    """The path that agrees longest with the argmax of its rows, padding and all."""
    indices, candidates = along_paths(parents, tokens, padding=0)
    wanted = p[indices].argmax(-1)
    lengths = (candidates[:, 1:] == wanted[:, :-1]).cumprod(-1).sum(-1)
    best = int(lengths.argmax())
    return [*candidates[best, 1 : 1 + lengths[best]].tolist(), int(wanted[best, lengths[best]])]


MUTANT = planted_tree(
    verify,
    "padding-is-a-token",
    "accepts the padding behind a short path",
    "top_k",
    citation="Medusa evaluate_posterior at e2a5d20",
    killed_by="greedy_is_argmax",
    control=greedy,
    claims=frozenset({Claim.GREEDY}),
)
