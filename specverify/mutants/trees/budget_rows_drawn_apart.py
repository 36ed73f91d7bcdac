"""SpecExec draws a token of the target for every path on its own, and once more behind the longest match."""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.reference import Decoder, Task
from specverify.reference.algorithms.rest_released import one_draw_a_row
from specverify.reference.algorithms.specexec import best_first_drafter
from specverify.reference.models import draft_model
from specverify.reference.tree_rounds import tree_decoder


def build(task: Task, budget: int = 16, depth: int = 8) -> Decoder:
    """The same tree, its rows verified apart."""
    return tree_decoder(task, best_first_drafter(draft_model(task), budget, depth), one_draw_a_row)


MUTANT = planted(
    "specexec",
    "budget-rows-drawn-apart",
    "draws for every path apart, and again",
    build,
    category="J",
    citation="FasterDecoding/REST rest/model/utils.py at 50a5fc1",
    killed_by="law_is_target",
)
