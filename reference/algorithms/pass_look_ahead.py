"""PaSS: one pass of the target with look-ahead tokens drafts, a second one verifies (Monea et al. 2311.13581).

The first drafted token is the target's own draw, so it is always accepted; look-ahead token i gives the law of the
token i positions after it, given the text but not the tokens drawn. Two target passes a round, hence at least two
tokens a round where the length allows. Without look-ahead tokens this is plain decoding. That the first token is taken
from the target and left out of the verified draft was read in a summary of the paper. Look-ahead embeddings are
learned; here they are modelled by tables.
"""

from __future__ import annotations

from ..drafters.head_chain import dependent_head, head_chain_drafter, look_ahead_heads
from ..lengths.constant import constant
from ..limits import perfect_draft
from ..models import draft_model
from ..pmf import checked_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.speculative_sampling import speculative_sampling


@from_parts
def build(task: Task, look_ahead: int = 3) -> Parts:
    """Return the decoder that drafts from the target's row, then from the ``look_ahead`` rows of the same pass."""
    length = constant(1 + look_ahead)
    first = dependent_head(checked_model(task.target, "target"))
    heads = (first, *look_ahead_heads(draft_model(task), look_ahead))
    return Parts(head_chain_drafter(heads), length, speculative_sampling)


ALGORITHM = Algorithm(
    name="pass",
    summary="d_1 ~ p, d_i ~ q_i of look-ahead tokens blind to the drafts, accepted with min(1, p/q_i)",
    build=build,
    claims=frozenset(Claim),
    examples=({"look_ahead": 0}, {"look_ahead": 1}),
    paper="arXiv 2311.13581, Section 3",
    systems=("PaSS",),
    needs_training="what its look-ahead embeddings guess right",
    reductions=(
        Reduction(
            "speculative-sampling", "no look-ahead token, q = p", {"look_ahead": 0}, {"gamma": 1}, limit=perfect_draft
        ),
    ),
)
