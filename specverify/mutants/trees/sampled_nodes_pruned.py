"""Sampled nodes are pruned by their own probability: what is left was chosen by what was drawn."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from reference import Decoder, Draft, Draws, Pmf, Task, Tokens
from reference.drafters.tree import tree_drafter, without_replacement
from reference.models import draft_model
from reference.tree_rounds import tree_decoder
from reference.trees import regular_tree
from reference.verifiers.recursive_rejection import recursive_rejection
from specverify.mutants.mutant import planted


def build(task: Task, branching: tuple[int, ...] = (2, 2, 1)) -> Decoder:
    """RSD of one level without unlikely siblings."""
    drafter = tree_drafter(draft_model(task), regular_tree(branching), without_replacement)

    def propose(draws: Draws, state: Any, prefix: Tokens, depth: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        tree = drafter.propose(draws, state, prefix, depth, stop_after)
        rows = zip(*tree, strict=True)
        likely = [row for row in rows if row[2] is not None and row[2][row[0]] >= Fraction(1, 3)]
        tokens, parents, pmfs = zip(*likely, strict=True) if likely else ((), (), ())
        return Draft(tokens, parents, pmfs)

    return tree_decoder(task, drafter._replace(propose=propose), recursive_rejection)


MUTANT = planted(
    "rsd",
    "sampled-nodes-pruned",
    "prunes what it drew by its probability",
    build,
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=({"branching": (2,)},),
)
