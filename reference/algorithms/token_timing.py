"""TokenTiming: text sampled in another vocabulary, aligned with its new spelling by warping (Xiao et al. 2510.15545).

The drafter samples a text, which the target's tokenizer spells again. Dynamic time warping aligns the two spellings, to
transfer the drafter's probabilities to the target's tokens. The release uses the alignment as follows
(SeabirdShore/TokenTiming at 904b301, ``transformers/generation/candidate_generator.py``,
``get_target_logits_with_dtw``): the row of each new token has one finite logit, at that token, the largest of the
aligned rows. Its softmax is 1 whatever the alignment is.

So the q of a draft t is the point mass on t. The draft is accepted with probability p(t); after a rejection the next
token is drawn from p without t. That is exact, since the text is complete before any acceptance is decided, and it
accepts as often as sample and match.

Only the beginning of the paper's text was available. Not covered: a rule that divides p(t) by the aligned probability
of the drafter's token. It is exact only if t was drafted with this probability. ``drafters.two_vocabularies`` models
the two tokenizers.
"""

from __future__ import annotations

from ..drafters.two_vocabularies import Pieces, respelled_sample_drafter
from ..lengths.constant import constant
from ..limits import greedy_draft
from ..models import draft_model
from ..rounds import from_parts, without_proposal
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.speculative_sampling import speculative_sampling


@from_parts
def build(task: Task, pieces: Pieces = (), gamma: int = 4) -> Parts:
    """Return the decoder that drafts ``gamma`` target tokens from text sampled in the drafter's vocabulary.

    ``pieces`` are the drafter's tokens that stand for several target tokens. The decoder has no function ``propose``,
    because its drafts are random although their q is a point mass.
    """
    drafter = respelled_sample_drafter(draft_model(task), pieces)
    return Parts(drafter, constant(gamma), speculative_sampling, around=without_proposal)


ALGORITHM = Algorithm(
    name="token-timing",
    summary="sampled text of a model with another vocabulary, in tokens of the target; t is accepted with p(t), "
    "else p without t",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"pieces": ((0, (0, 1)),), "gamma": 2}, {"pieces": ((0, (1, 0)), (1, (1, 1, 0))), "gamma": 3}),
    paper="arXiv 2510.15545; code: SeabirdShore/TokenTiming 904b301, transformers/generation/candidate_generator.py",
    systems=("TokenTiming",),
    needs_training="how often two tokenizers agree",
    reductions=(
        Reduction("sample-and-match", "both models have the same vocabulary", {"gamma": 2}, {"gamma": 2}),
        Reduction(
            "slem",
            "q one-hot",
            {"pieces": ((0, (0, 1)),), "gamma": 2},
            {"pieces": ((0, (0, 1)),), "gamma": 2},
            limit=greedy_draft,
        ),
    ),
)
