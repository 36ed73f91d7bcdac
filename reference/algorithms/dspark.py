"""DSpark: a parallel drafter with a Markov head, and a block that ends where a confidence is low (2607.05147).

The rule is that of the released code, deepseek-ai/DeepSpec at afdfa7c. ``VanillaMarkov.sample_block_tokens``
(``deepspec/modeling/dspark/markov_head.py``) adds to the parallel logits of a slot a bias that depends on the token
before it, and draws from their softmax. ``build_dspark_proposal`` (``deepspec/eval/dspark/draft_ops.py``) passes this
softmax to the verifier as q. The confidence head of slot i reads its hidden state and the token before it, not draft i
(``_predict_confidence_logits``). The first slot below the threshold ends the block before verification.

So the decision to draft slot i does not depend on its token: this is a length rule, which is exact. The rows and
confidences are modelled in ``drafters.block_rows``.
"""

from __future__ import annotations

from typing import Any

from ..drafters.block_rows import block_rows_drafter
from ..lengths.constant import constant
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.speculative_sampling import speculative_sampling


@from_parts
def build(task: Task, block: int = 7, least: Any = 0) -> Parts:
    """Return the decoder that drafts at most ``block`` tokens.

    A draft ends before the first token whose confidence, the largest entry of its q, is below ``least``.
    """
    drafter = block_rows_drafter(draft_model(task), block, markov=True, least=least)
    return Parts(drafter, constant(block), speculative_sampling)


ALGORITHM = Algorithm(
    name="dspark",
    summary="d_i ~ norm(parallel row i times a bias by d_(i-1)) while confident; accepted with min(1, p/q_i)",
    build=build,
    claims=frozenset(Claim),
    examples=({"block": 2}, {"block": 3, "least": 0.55}),
    paper="arXiv 2607.05147; code: deepseek-ai/DeepSpec afdfa7c, deepspec/eval/dspark/draft_ops.py",
    systems=("DSpark",),
    needs_training="the backbone, its Markov head and its confidence head",
    reductions=(Reduction("autoregressive", "blocks of no tokens", {"block": 0}),),
)
