"""Edge and cloud with a gate that commits blocks locally (the edge-cloud guide, Sections 3.1 and 4). Biased by design.

The edge drafts a block from q. A token is hard by the edge's own signals (``lengths.gating``). If the share of hard
tokens is at most ``most``, the edge commits the block without the cloud. Such a block has the law of blocks drafted
from q, given that the share is at most ``most``; it does not have the law of p. Otherwise the cloud verifies the block.
A round ends with the cloud's answer, so it may contain several blocks committed before; their tokens count as accepted.
The cloud then receives the whole text with the next request.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from ..lengths.constant import constant
from ..lengths.gating import Gate, is_hard
from ..models import draft_model
from ..parameters import exact
from ..rounds import check_unfinished
from ..types import Decoder, Draws, Pmf, Round, Site, State, Task, Tokens
from .decoder import BothSides, edge_cloud_decoder
from .edge import Edge, committed_alone, drafted
from .modes import check_session_seed


class _OfBlock:
    """A source of draws for one of the blocks that a round drafts.

    It adds the block's number to the name (site) of each draw. So the draws of two blocks have different names.
    """

    def __init__(self, draws: Draws, block: int) -> None:
        self._draws, self._block = draws, block

    def categorical(self, pmf: Pmf, site: Site) -> int:
        return self._draws.categorical(pmf, ("block", self._block, *site))


def is_easy(gate: Gate, most: Any, draft: Tokens, pmfs: Sequence[Pmf]) -> bool:
    """Return whether the edge commits a block without the cloud: its share of hard tokens is at most ``most``.

    A token of ``draft`` is hard by ``gate`` and its row of ``pmfs``. The result is False for an empty block.
    """
    hard = sum(is_hard(gate, q, token) for token, q in zip(draft, pmfs, strict=True))
    return bool(draft) and Fraction(hard, len(draft)) <= exact(most)


def gated_decoder(task: Task, mode: str, gate: Gate, most: Any, gamma: int) -> Decoder:
    """Return the decoder of edge, gate and cloud; the edge drafts blocks of ``gamma`` tokens.

    ``gate`` and ``most`` decide which blocks are sent to the cloud, as in ``is_easy``; a ``most`` below 0 sends all.
    The cloud verifies these blocks in ``mode``. Raises ``ValueError`` for a mode with shared noise.
    """
    check_session_seed(mode, None)
    edge = Edge(draft_model(task), constant(gamma), mode, task.eos)
    through_cloud = edge_cloud_decoder(task, mode, constant(gamma))

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        check_unfinished(state)
        assert isinstance(state.drafter, BothSides)
        now, cloud = state.drafter
        alone: Tokens = ()
        blocks = 0
        while now.remaining:
            block, pmfs, cache = drafted(edge, _OfBlock(draws, blocks), now)
            now = now._replace(block=block, cache=cache)
            if not is_easy(gate, most, block.draft, pmfs):
                break
            now, done = committed_alone(edge, now, len(block.draft))
            now, cloud, alone, blocks = now._replace(epoch=0), None, alone + done.tokens, blocks + 1
        between = State(now.tokens, now.remaining, BothSides(now, cloud), state.length)
        if not now.remaining:
            return between, Round(alone, alone, len(alone), len(alone))
        after, done = through_cloud.step(draws, between)
        return after, done._replace(
            tokens=alone + done.tokens,
            draft=alone + done.draft,
            accepted=len(alone) + done.accepted,
            reached=len(alone) + done.reached,
        )

    return through_cloud._replace(step=step, propose=None)  # a round may draft several blocks: none of them is its half
