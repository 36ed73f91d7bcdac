"""AdaEDL: speculative sampling that stops drafting if a lower bound of the acceptance is low (2410.18351).

Agrawal et al. The lower bound is ``1 - sqrt(scale H(q))``, and drafting stops if it is below a threshold lambda. The
paper sets scale to .2. Only abstracts and summaries of the paper were available. Two points could not be confirmed:
whether the token at which drafting stops is kept, and how lambda follows past acceptance. Here the threshold is fixed
and the token is kept. A threshold that follows past rounds would be exact as well (see ``draft-and-verify``).
"""

from __future__ import annotations

from ..drafters.model import model_drafter
from ..lengths.entropy_stopping import entropy_stopping
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.speculative_sampling import speculative_sampling


@from_parts
def build(task: Task, threshold: float = 0.5, scale: float = 0.2, gamma: int = 8) -> Parts:
    """Return the decoder that drafts at most ``gamma`` tokens and stops if ``1 - sqrt(scale H(q)) < threshold``.

    H(q) is the entropy of the row q from which a draft was drawn; that draft is kept, and no further one is drafted.
    """
    rule = entropy_stopping(1 - threshold, scale, gamma)
    return Parts(model_drafter(draft_model(task)), rule, speculative_sampling)


ALGORITHM = Algorithm(
    name="adaedl",
    summary="speculative sampling; drafting ends after a token with 1 - sqrt(c H(q)) below a threshold",
    build=build,
    claims=frozenset(Claim),
    examples=({"threshold": 0.6, "gamma": 2}, {"threshold": 0.55, "gamma": 3}),
    paper="arXiv 2410.18351 (the bound)",
    systems=("AdaEDL",),
    reductions=(
        Reduction("speculative-sampling", "threshold = 0", {"threshold": 0.0, "gamma": 2}, {"gamma": 2}),
        Reduction(
            "svip",
            "SVIP's threshold 1 - lambda, and its scale",
            {"threshold": 0.5, "scale": 0.2, "gamma": 2},
            {"threshold": 0.5, "scale": 0.2, "gamma": 2},
        ),
    ),
)
