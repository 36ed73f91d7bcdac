"""The transport plan is made for candidates drawn with replacement, they are drawn without."""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.reference import Decoder, Task
from specverify.reference.drafters.tree import tree_drafter, without_replacement
from specverify.reference.models import draft_model
from specverify.reference.tree_rounds import tree_decoder
from specverify.reference.trees import regular_tree
from specverify.reference.verifiers.optimal_transport import optimal_transport


def build(task: Task, branching: tuple[int, ...] = (2, 1), replacement: bool = False) -> Decoder:
    """The transport optimum for the wrong law of candidate sets."""
    drafter = tree_drafter(draft_model(task), regular_tree(branching), without_replacement)
    return tree_decoder(task, drafter, optimal_transport(not replacement))


MUTANT = planted(
    "transport-optimum",
    "plan-for-another-draw",
    "plans for draws with replacement",
    build,
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=({"branching": (2,), "replacement": False},),
)
