"""A top-k tree is verified with the soft q, as if its nodes had been drawn."""

from __future__ import annotations

from reference import Decoder, Draws, Pmf, Site, Task, Tokens
from reference.drafters.tree import Child, most_likely, tree_drafter
from reference.models import draft_model
from reference.tree_rounds import tree_decoder
from reference.trees import regular_tree
from reference.verifiers.recursive_rejection import recursive_rejection
from specverify.mutants.mutant import planted


def pick(draws: Draws, q: Pmf, earlier: Tokens, width: int, site: Site) -> Child | None:
    """Take the most probable token and say that it was drawn."""
    child = most_likely(draws, q, earlier, width, site)
    return None if child is None else Child(child.token, q)


def build(task: Task, branching: tuple[int, ...] = (3, 2, 1)) -> Decoder:
    """Recursive rejection of deterministic candidates."""
    return tree_decoder(task, tree_drafter(draft_model(task), regular_tree(branching), pick), recursive_rejection)


MUTANT = planted(
    "candidate-set",
    "top-k-tree-soft-q",
    "divides by q for tokens that were not drawn",
    build,
    category="B",
    citation="EAGLE issues #221, #110 (disputed there)",
    killed_by="law_is_target",
    examples=({"branching": (2,)},),
)
