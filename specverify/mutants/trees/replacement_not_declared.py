"""Siblings are drawn with replacement and declared without it."""

from __future__ import annotations

from reference import Decoder, Draws, Pmf, Site, Task, Tokens
from reference.drafters.tree import Child, excluding, tree_drafter
from reference.models import draft_model
from reference.tree_rounds import tree_decoder
from reference.trees import regular_tree
from reference.verifiers.recursive_rejection import recursive_rejection
from specverify.mutants.mutant import planted


def pick(draws: Draws, q: Pmf, earlier: Tokens, width: int, site: Site) -> Child | None:
    """Draw from q, declare q without the earlier siblings."""
    left = excluding(q, earlier)
    return None if left is None else Child(draws.categorical(q, site), left)


def build(task: Task, branching: tuple[int, ...] = (2, 2, 1)) -> Decoder:
    """RSD of repeated siblings."""
    return tree_decoder(task, tree_drafter(draft_model(task), regular_tree(branching), pick), recursive_rejection)


MUTANT = planted(
    "rsd",
    "replacement-not-declared",
    "may draw a sibling twice, denies it",
    build,
    category="J",
    citation="plausible",
    killed_by="draft_is_honest",
    examples=({"branching": (2,)},),
)
