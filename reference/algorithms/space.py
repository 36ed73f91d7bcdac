"""SPACE: a semi-autoregressive model drafts after every candidate while it verifies it (Yi et al. 2402.11809).

The input of a pass is the last token and k candidates, each followed by k mask tokens (see ``group_mask``). The pass
verifies the candidates greedily. The masks after the last accepted candidate give the next k candidates. These do not
depend on the token that the pass adds, because that token is not yet in the input. The output is exact for the
fine-tuned model, which is the target here. Of the (k + 1)^2 positions k^2 are masks whose results are not used. Not
covered: the benefit of semi-autoregressive tuning, which needs training.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..drafters.head_chain import greedy_head_chain_drafter, independent_heads
from ..laws import greedy_law
from ..lengths.constant import constant
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.greedy_match import greedy_match


@from_parts
def build(task: Task, gamma: int = 4) -> Parts:
    """Return the decoder that appends ``gamma`` mask tokens after the last accepted token and drafts their argmaxes."""
    heads = independent_heads(draft_model(task), gamma)
    return Parts(greedy_head_chain_drafter(heads), constant(gamma), greedy_match)


def group_mask(k: int) -> Any:
    """Return the attention mask among the (k + 1)^2 new rows, bool ``[rows, rows]``.

    The rows are k + 1 groups of a candidate and its k mask tokens. The candidate of group 0 is the last token of the
    text. A candidate attends to itself and the candidates before it. A mask token attends to its candidate, to the
    candidates before that one, and to the mask tokens of its group up to itself. An entry is True if the row attends to
    the column.
    """
    group, place = np.divmod(np.arange((k + 1) ** 2), k + 1)
    candidate = (place[None, :] == 0) & (group[None, :] <= group[:, None])
    own_group = (group[None, :] == group[:, None]) & (place[None, :] <= place[:, None])
    return candidate | own_group


def position_ids(k: int, known: int) -> Any:
    """Return the position in the text of every new input token of a forward pass, int64 ``[(k + 1)^2]``.

    The input has k + 1 candidates, each followed by k mask tokens at the next positions. ``known`` is the number of
    known tokens.
    """
    group, place = np.divmod(np.arange((k + 1) ** 2), k + 1)
    return known - 1 + group + place


ALGORITHM = Algorithm(
    name="space",
    summary="masks after each candidate guess the next tokens; accepted while d = argmax p",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"gamma": 1}, {"gamma": 2}),
    paper="arXiv 2402.11809, auto-correct decoding",
    declared_law=greedy_law,
    systems=("SPACE",),
    needs_training="the fine-tuning for drafts from mask tokens",
    reductions=(Reduction("greedy-speculation", "gamma = 0", {"gamma": 0}, {"gamma": 0}),),
)
