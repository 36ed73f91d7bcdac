"""Token Recycling draws a token of the target for every path on its own, and once more behind the longest match."""

from __future__ import annotations

from reference import Decoder, Task, Tokens
from reference.algorithms.rest_released import one_draw_a_row
from reference.drafters.recycled import recycling_drafter
from reference.tree_rounds import tree_decoder
from specverify.mutants.mutant import planted


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
