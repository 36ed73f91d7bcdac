"""SLEM, string-level exact match: the drafter's text, re-spelled in the target's tokens, matched with draws from p.

The drafter has its own vocabulary. Its text is tokenised again by the target's tokenizer, and a token is accepted if
the target's draw equals it (Timor et al. 2502.05202). The output consists of the target's draws, so the algorithm is
exact for any tokenizers. Here the drafter writes greedily, and ``drafters.two_vocabularies`` models the two tokenizers.
"""

from __future__ import annotations

from ..drafters.two_vocabularies import Pieces, respelling_drafter
from ..lengths.constant import constant
from ..limits import greedy_draft
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.sample_and_match import sample_and_match


@from_parts
def build(task: Task, pieces: Pieces = (), gamma: int = 4) -> Parts:
    """Return the decoder that drafts ``gamma`` target tokens from the drafter's greedy text.

    ``pieces`` are the drafter's tokens that stand for several target tokens.
    """
    return Parts(respelling_drafter(draft_model(task), pieces), constant(gamma), sample_and_match)


ALGORITHM = Algorithm(
    name="slem",
    summary="drafts are text of a model with another vocabulary, in tokens of the target; draw z ~ p, continue "
    "while z = d",
    build=build,
    claims=frozenset(Claim),
    examples=({"pieces": ((0, (0, 1)),), "gamma": 2}, {"pieces": ((1, (1, 1, 0)),), "gamma": 3}),
    paper="arXiv 2502.05202, string-level exact match",
    systems=("SLEM", "universal assisted generation"),
    needs_training="how often two tokenizers agree",
    reductions=(
        Reduction(
            "sample-and-match",
            "both models have the same vocabulary, q one-hot",
            {"gamma": 2},
            {"gamma": 2},
            limit=greedy_draft,
        ),
    ),
)
