"""The longest path is found, and the token behind it is read on the first one."""

from __future__ import annotations

from typing import Any

from specverify.mutants.numpy_trees import along_paths, greedy, planted_tree
from specverify.reference import Claim


def verify(p: Any, q: Any, parents: Any, tokens: Any) -> list[int]:
    """The path that agrees longest with the argmax of its rows, and the next token of another one."""
    indices, candidates = along_paths(parents, tokens, padding=-1)
    wanted = p[indices].argmax(-1)
    lengths = (candidates[:, 1:] == wanted[:, :-1]).cumprod(-1).sum(-1)
    best = int(lengths.argmax())
    return [*candidates[best, 1 : 1 + lengths[best]].tolist(), int(wanted[0, lengths[best]])]


MUTANT = planted_tree(
    verify,
    "row-of-the-first-path",
    "reads the next token on another path",
    "top_k",
    citation="plausible",
    killed_by="greedy_is_argmax",
    control=greedy,
    claims=frozenset({Claim.GREEDY}),
)
