"""DFlash with sampled drafts: each position of a block is drawn from its own row, which is its q.

The release drafts the argmax of each row at its default temperature (``dflash``). At a positive temperature the tokens
are draws from rows that do not depend on each other. With these rows as q the rule is speculative sampling, which is
exact although no q is conditioned on the drafts before it. DeepSpec's DFlash (deepseek-ai/DeepSpec at afdfa7c,
``deepspec/eval``) verifies in this way, by the softmax of the logits from which the draft was drawn.
"""

from __future__ import annotations

from ..drafters.block_rows import block_rows_drafter
from ..lengths.constant import constant
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.speculative_sampling import speculative_sampling


@from_parts
def build(task: Task, block: int = 4) -> Parts:
    """Return the decoder that drafts ``block`` tokens, drawn from rows that depend on the text alone."""
    return Parts(block_rows_drafter(draft_model(task), block, markov=False), constant(block), speculative_sampling)


ALGORITHM = Algorithm(
    name="dflash-sampled",
    summary="a block of draws d_i ~ q_i from rows that do not read the other draws; accepted with min(1, p/q_i)",
    build=build,
    claims=frozenset(Claim),
    examples=({"block": 2}, {"block": 3}),
    paper="arXiv 2602.06036; code: deepseek-ai/DeepSpec afdfa7c, deepspec/eval",
    systems=("DFlash",),
    needs_training="the block-diffusion drafter, which reads the target's features",
    reductions=(
        Reduction("speculative-sampling", "blocks of one token", {"block": 1}, {"gamma": 1}),
        Reduction("autoregressive", "blocks of no tokens", {"block": 0}),
    ),
)
