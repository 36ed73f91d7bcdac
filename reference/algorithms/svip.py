"""SVIP: speculative sampling that stops drafting after a token drawn at high draft entropy (Zhang et al. 2411.18462).

The rule is read in the released code (``lengths.entropy_stopping``); the paper derives it from a lower bound of the
acceptance by entropies. The rule depends on q alone, so it is exact however good the bound is.
"""

from __future__ import annotations

from ..drafters.model import model_drafter
from ..lengths.entropy_stopping import entropy_stopping
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.speculative_sampling import speculative_sampling


@from_parts
def build(task: Task, threshold: float = 0.3, scale: float = 0.15, gamma: int = 40) -> Parts:
    """Return the decoder that drafts at most ``gamma`` tokens, none after one with ``sqrt(scale H(q)) > threshold``."""
    return Parts(model_drafter(draft_model(task)), entropy_stopping(threshold, scale, gamma), speculative_sampling)


ALGORITHM = Algorithm(
    name="svip",
    summary="speculative sampling; drafting ends after a token with sqrt(c H(q)) above a threshold",
    build=build,
    claims=frozenset(Claim),
    examples=({"threshold": 0.35, "gamma": 2}, {"threshold": 0.38, "gamma": 3}),
    paper="arXiv 2411.18462; code: Geralt-Targaryen/SVIP 0cd912e, vanilla-sd/eval_specbench.py",
    systems=("SVIP",),
    reductions=(Reduction("speculative-sampling", "threshold = 1", {"threshold": 1.0, "gamma": 2}, {"gamma": 2}),),
)
