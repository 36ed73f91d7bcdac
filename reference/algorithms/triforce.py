"""TriForce: the target with a partial cache drafts for the target, and a small model drafts for it (2404.11912).

q'' is the small model, q' the target with a partial cache, p the target. Inner rounds verify drafts of q'' against q',
so their tokens have the law q'. The outer round verifies these tokens against p and is lossless for p, also if the last
inner round is cut. ``triforce-released`` differs in one line. A partial cache is modelled by p without the first tokens
of the text. If no token is left out, q' = p and nothing is rejected.
"""

from __future__ import annotations

from ..drafters.cascade import vertical
from ..drafters.model import model_drafter
from ..drafters.sequences import forgetful
from ..lengths.constant import constant
from ..limits import perfect_draft
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.speculative_sampling import speculative_sampling


@from_parts
def build(task: Task, gamma: int = 4, inner: int = 1, forget: int = 1) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens with the law q', by inner rounds of ``inner`` drafts.

    q' is the target without the first ``forget`` tokens of the text.
    """
    partial = forgetful(task.target, forget)
    drafter = vertical(partial, model_drafter(draft_model(task)), inner, speculative_sampling)
    return Parts(drafter, constant(gamma), speculative_sampling)


ALGORITHM = Algorithm(
    name="triforce",
    summary="q'' drafts for q' by speculative sampling, and these tokens draft for p by speculative sampling",
    build=build,
    claims=frozenset(Claim),
    examples=({"gamma": 2, "inner": 1},),
    paper="arXiv 2404.11912, Algorithm 1",
    systems=("TriForce",),
    needs_training="how similar the pmfs with a partial cache and with the whole cache are",
    reductions=(
        Reduction(
            "speculative-sampling",
            "the cache is complete, q = p",
            {"gamma": 2, "inner": 1, "forget": 0},
            {"gamma": 2},
            limit=perfect_draft,
            shown_by="test_cascade.py::test_a_partial_cache_that_holds_everything_is_never_rejected",
        ),
    ),
)
