"""PaSS: one pass of the target with look-ahead tokens drafts, a second one verifies (Monea et al. 2311.13581).

The first drafted token is drawn from the target's own row, so it is always accepted. Look-ahead token i gives the law
of the token i positions after it. This law depends on the text, but not on the drafted tokens. A round has two target
passes, so it emits at least two tokens unless the text ends. Without look-ahead tokens this is plain decoding.

The look-ahead embeddings of the paper are learned; here the draft model replaces them. That the first token comes from
the target, and is not verified again, was read in a summary of the paper only.
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
    """Return the decoder that drafts 1 + ``look_ahead`` tokens from the rows of one forward pass of the target.

    The first token is drawn from p. Each further token is drawn from the row of a look-ahead token, which is appended
    to the text in this pass and does not read the drafts.
    """
    length = constant(1 + look_ahead)
    first = dependent_head(checked_model(task.target, "target"))
    heads = (first, *look_ahead_heads(draft_model(task), look_ahead))
    return Parts(head_chain_drafter(heads), length, speculative_sampling)


ALGORITHM = Algorithm(
    name="pass",
    summary="d_1 ~ p, d_i ~ q_i of look-ahead tokens that do not read the drafts; accepted with min(1, p/q_i)",
    build=build,
    claims=frozenset(Claim),
    examples=({"look_ahead": 0}, {"look_ahead": 1}),
    paper="arXiv 2311.13581, Section 3",
    systems=("PaSS",),
    needs_training="how often drafts by its look-ahead embeddings are right",
    reductions=(
        Reduction(
            "speculative-sampling", "no look-ahead tokens, q = p", {"look_ahead": 0}, {"gamma": 1}, limit=perfect_draft
        ),
    ),
)
