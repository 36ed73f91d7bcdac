"""Cascade speculative drafting, its sampling form: n-gram look-ups draft for the drafter, and continue after it.

The first ``large`` tokens of a draft come from inner rounds: tokens of a Max-Gram look-up are verified against q by
speculative sampling, so that the result has the law q (the vertical cascade). Then ``small`` more tokens are looked up,
as point masses (the horizontal cascade). The decoder is lossless, because the pmf recorded for each token is the one
from which it was really drawn.

The released code is greedy. A leniency factor relaxes its inner verification, but not the last one, so its output is
exact too. The look-up is that of ``prompt-lookup``, without the corpus bigrams that Max-Gram uses if nothing matches.
"""

from __future__ import annotations

from ..drafters.cascade import horizontal, vertical
from ..drafters.prompt_lookup import prompt_lookup_drafter
from ..lengths.constant import constant
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.speculative_sampling import speculative_sampling


@from_parts
def build(task: Task, large: int = 4, small: int = 3, inner: int = 3, max_ngram: int = 3) -> Parts:
    """Return the decoder that drafts ``large`` tokens with the law q, then ``small`` tokens by look-up.

    The ``large`` tokens come from inner rounds, each of which verifies at most ``inner`` looked-up tokens.
    ``max_ngram`` is the longest suffix that is looked up.
    """
    lookups = prompt_lookup_drafter(max_ngram, task.eos)
    first = vertical(draft_model(task), lookups, inner, speculative_sampling)
    drafter = horizontal(((first, large), (lookups, small)))
    return Parts(drafter, constant(large + small), speculative_sampling)


ALGORITHM = Algorithm(
    name="cascade-drafting",
    summary="lookups verified by q give drafts of q, then lookups alone; accepted with min(1, p/q_i)",
    build=build,
    claims=frozenset(Claim),
    examples=(
        {"large": 1, "small": 1, "inner": 1, "max_ngram": 1},
        {"large": 2, "small": 1, "inner": 2, "max_ngram": 2},
    ),
    paper="arXiv 2312.11462, Algorithm 1 with sampling",
    systems=("CS-Drafting",),
    reductions=(
        Reduction(
            "speculative-sampling",
            "no lookups draft",
            {"large": 2, "small": 0, "inner": 0, "max_ngram": 1},
            {"gamma": 2},
        ),
        Reduction(
            "prompt-lookup",
            "only lookups draft",
            {"large": 0, "small": 2, "inner": 0, "max_ngram": 2},
            {"max_ngram": 2, "gamma": 2},
        ),
    ),
)
