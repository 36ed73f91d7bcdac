"""TokenTiming: another vocabulary's sampled text, aligned with its new spelling by warping (Xiao et al. 2510.15545).

The drafter samples a text, which the target's tokenizer spells anew. Dynamic time warping aligns the two spellings, to
carry the drafter's probabilities over to the target's tokens. The use of the alignment in the release
(SeabirdShore/TokenTiming at 904b301, ``transformers/generation/candidate_generator.py``,
``get_target_logits_with_dtw``): the row of each new token holds one finite logit, at that very token, the largest of
the aligned rows. Its softmax is 1 whatever the alignment is. So the draft declares the point mass on itself and stays
with probability p(t); where it does not, the next token is drawn from p without t. That is exact, since the text is
complete before any of its coins is tossed, and it accepts as often as drawing from p and comparing.

The text of the paper could be read no further than its beginning. A rule that divides p(t) by the aligned probability
of the drafter's token is not this row: it is exact only where that is the probability with which t was drafted. The
stand-in for two tokenizers is that of ``drafters.two_vocabularies``.
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
    """Draft gamma of the target's tokens, of which the drafter spells some by one token of its own.

    The drafting is not shown alone: what is drawn declares the point mass on itself.
    """
    drafter = respelled_sample_drafter(draft_model(task), pieces)
    return Parts(drafter, constant(gamma), speculative_sampling, around=without_proposal)


ALGORITHM = Algorithm(
    name="token-timing",
    summary="another vocabulary's sampled text spelled in one's own tokens, t kept with p(t), else p without t",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"pieces": ((0, (0, 1)),), "gamma": 2}, {"pieces": ((0, (1, 0)), (1, (1, 1, 0))), "gamma": 3}),
    paper="arXiv 2510.15545; code: SeabirdShore/TokenTiming 904b301, transformers/generation/candidate_generator.py",
    systems=("TokenTiming",),
    needs_training="how often two tokenizers agree",
    reductions=(
        Reduction("sample-and-match", "one vocabulary", {"gamma": 2}, {"gamma": 2}),
        Reduction(
            "slem",
            "q one-hot",
            {"pieces": ((0, (0, 1)),), "gamma": 2},
            {"pieces": ((0, (0, 1)),), "gamma": 2},
            limit=greedy_draft,
        ),
    ),
)
