"""Where q is exhausted further children come from all other tokens, and are still verified with q."""

from __future__ import annotations

from typing import Any

from specverify.mutants.mutant import planted
from specverify.reference import Decoder, Draws, Pmf, Site, Task, Tokens
from specverify.reference.drafters.sequoia_tree import sequoia_tree
from specverify.reference.drafters.tree import Child, tree_drafter, without_replacement_then_uniform
from specverify.reference.models import draft_model
from specverify.reference.tree_rounds import tree_decoder
from specverify.reference.verifiers.recursive_rejection import recursive_rejection


def pick(draws: Draws, q: Pmf, earlier: Tokens, width: int, site: Site) -> Child | None:
    """Declare q for a token that q never gives."""
    child = without_replacement_then_uniform(draws, q, earlier, width, site)
    return child if child is None or q[child.token] > 0 else Child(child.token, q)


def build(task: Task, acceptance: tuple[Any, ...] = (0.6, 0.3), size: int = 3, depth: int = 1) -> Decoder:
    """Sequoia's tree with these children."""
    parents = sequoia_tree(acceptance, size, depth).parents
    return tree_decoder(task, tree_drafter(draft_model(task), parents, pick), recursive_rejection)


MUTANT = planted(
    "sequoia",
    "exhausted-draft-keeps-q",
    "verifies a child of the exhausted draft with q",
    build,
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=({"acceptance": (0.6, 0.3), "size": 3, "depth": 1},),
)
