"""Rows of all trees are laid behind each other, and the root's row is forgotten where a tree begins."""

from __future__ import annotations

from typing import Any

from specverify.mutants.numpy_trees import planted_tree, top_k


def verify(p: Any, q: Any, parents: Any, tokens: Any) -> list[list[int]]:
    """A draw from p looked up among candidates, from rows that begin one too early for each tree before."""
    nodes = parents.shape[1]
    rows = p.reshape(-1, p.shape[-1])
    return [
        top_k(rows[tree * nodes : tree * nodes + nodes + 1], None, parents[tree], tokens[tree])
        for tree in range(len(p))
    ]


MUTANT = planted_tree(
    verify,
    "trees-run-together",
    "begins a tree one row too early",
    "top_k",
    citation="plausible",
    killed_by="law_is_target",
    batched=True,
)
