"""Token Recycling draws a token of the target for every path on its own, and once more behind the longest match."""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.reference import Decoder, Task, Tokens
from specverify.reference.algorithms.rest_released import one_draw_a_row
from specverify.reference.drafters.recycled import recycling_drafter
from specverify.reference.tree_rounds import tree_decoder


def build(task: Task, template: tuple[Tokens, ...] = ((0,),), width: int = 8) -> Decoder:
    """The same tree, its rows verified apart."""
    return tree_decoder(task, recycling_drafter(template, width), one_draw_a_row)


MUTANT = planted(
    "token-recycling",
    "recycled-rows-drawn-apart",
    "draws for every path apart, and again",
    build,
    category="J",
    citation="FasterDecoding/REST rest/model/utils.py at 50a5fc1",
    killed_by="law_is_target",
)
