"""Siblings are drawn without replacement and verified as if each had been drawn from all of q."""

from __future__ import annotations

from typing import Any

from specverify.mutants.numpy_trees import planted_tree, with_replacement


def verify(p: Any, q: Any, parents: Any, tokens: Any) -> list[int]:
    """Recursive rejection with q as it is."""
    return with_replacement(p, q, parents, tokens)


MUTANT = planted_tree(
    verify,
    "earlier-siblings-in-q",
    "leaves earlier siblings in q",
    "without_replacement",
    citation="plausible",
    killed_by="law_is_target",
)
