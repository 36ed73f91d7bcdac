"""DFlash: a block-diffusion model drafts a whole block at once (2602.06036).

The rule is that of the released code, z-lab/dflash at 44947fb, ``dflash/model.py``, ``dflash_generate``. In one pass
each masked position of a block is filled with the argmax of its own row (``sample(draft_logits)`` at its default
temperature 0), independent of the other positions. The target draws a token at every row. Drafts are accepted while
they equal these draws; the first draft that differs is replaced by the target's draw. This is sample and match, exact
at every temperature, whatever the drafter.

The diffusion model is trained; here its row i is q after the text and i greedy tokens of q, as in ``medusa``. So each
row is a function of the text so far.
"""

from __future__ import annotations

from ..drafters.heads import heads_drafter, stand_in_head
from ..lengths.constant import constant
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.sample_and_match import sample_and_match


@from_parts
def build(task: Task, block: int = 4) -> Parts:
    """Return the decoder that drafts ``block`` tokens at once, each the argmax of its own row."""
    heads = [stand_in_head(draft_model(task), ahead) for ahead in range(block)]
    return Parts(heads_drafter(heads, (1,) * block), constant(block), sample_and_match)


ALGORITHM = Algorithm(
    name="dflash",
    summary="a block of argmaxes, each without reading the others; draw z ~ p, emit z, and continue while z = d",
    build=build,
    claims=frozenset(Claim),
    examples=({"block": 2}, {"block": 3}),
    paper="arXiv 2602.06036; code: z-lab/dflash 44947fb, dflash/model.py",
    systems=("DFlash",),
    needs_training="the block-diffusion drafter, which reads the target's features",
    reductions=(
        Reduction("autoregressive", "blocks of no tokens", {"block": 0}),
        Reduction("medusa", "one candidate per head", {"block": 2}, {"widths": (1, 1)}),
    ),
)
