"""Medusa with exact verification: a tree with all combinations of the heads' top tokens, verified by draws from p.

The tree of all combinations is the paper's. The release keeps only some of its paths, listed by the ranks of their
tokens (FasterDecoding/Medusa at e2a5d20, ``medusa/model/utils.py``, ``generate_medusa_buffers``). Medusa's typical
acceptance is another rule, which is not lossless (``typical-acceptance``). Here head i is not trained: it appends i
greedy tokens of q to the text and returns q after the result. Like a trained head it is a function of the text so far.
"""

from __future__ import annotations

from ..drafters.heads import heads_drafter, stand_in_head
from ..models import draft_model
from ..tree_rounds import tree_decoder
from ..types import Algorithm, Claim, Decoder, Reduction, Task
from ..verifiers.candidate_set import candidate_set


def build(task: Task, widths: tuple[int, ...] = (3, 2, 2)) -> Decoder:
    """Return the decoder of trees with all combinations of the heads' best tokens.

    Each node at depth i has the same children: the ``widths[i]`` best tokens of head i. The root has depth 0.
    """
    draft = draft_model(task)
    heads = [stand_in_head(draft, ahead) for ahead in range(len(widths))]
    return tree_decoder(task, heads_drafter(heads, widths), candidate_set)


ALGORITHM = Algorithm(
    name="medusa",
    summary="heads that read only the committed text; the product of their top tokens, verified as candidate sets",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"widths": (2,)}, {"widths": (2, 2)}),
    paper="arXiv 2401.10774, tree attention; exact verification",
    systems=("Medusa",),
    needs_training="how often its heads are right, and the tree that is chosen by these rates",
    reductions=(Reduction("candidate-set", "one head", {"widths": (2,)}, {"branching": (2,)}),),
)
