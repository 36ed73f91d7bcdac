"""Sampled siblings are verified in the order of their probability instead of the order they were drawn in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reference import Decoder, Draft, Draws, Pmf, Task, Tokens
from reference.drafters.tree import excluding, tree_drafter, without_replacement
from reference.models import draft_model
from reference.tree_rounds import tree_decoder
from reference.trees import regular_tree
from reference.verifiers.recursive_rejection import recursive_rejection
from specverify.mutants.mutant import planted


def build(task: Task, branching: tuple[int, ...] = (2, 2, 1)) -> Decoder:
    """RSD of one level, sorted."""
    drafter = tree_drafter(draft_model(task), regular_tree(branching), without_replacement)

    def propose(draws: Draws, state: Any, prefix: Tokens, depth: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        tree = drafter.propose(draws, state, prefix, depth, stop_after)
        q = draft_model(task)(prefix)
        best = tuple(sorted(tree.tokens, key=lambda token: -q[token]))
        return Draft(best, tree.parents, tuple(excluding(q, best[:k]) for k in range(len(best))))

    return tree_decoder(task, drafter._replace(propose=propose), recursive_rejection)


MUTANT = planted(
    "rsd",
    "siblings-sorted",
    "tries likely siblings first",
    build,
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=({"branching": (2,)},),
)
