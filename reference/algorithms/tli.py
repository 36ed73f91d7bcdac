"""TLI, token-level intersection: speculative sampling with q restricted to the tokens that both vocabularies have.

The drafter's pmf loses the tokens that the target lacks and is renormalised before anything is drawn (Timor et al.
2502.05202). q' is the law of the draft and is compared with p, so the rule is exact. A token that only the target has
is never drafted and comes from the residual alone. Drawing from q and dropping a missing token afterwards, or comparing
with q before it is renormalised, is biased.
"""

from __future__ import annotations

from ..drafters.two_vocabularies import shared_tokens_drafter
from ..lengths.constant import constant
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task, Tokens
from ..verifiers.speculative_sampling import speculative_sampling


@from_parts
def build(task: Task, missing: Tokens = (), gamma: int = 4) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens from q without the tokens ``missing``."""
    return Parts(shared_tokens_drafter(draft_model(task), missing), constant(gamma), speculative_sampling)


ALGORITHM = Algorithm(
    name="tli",
    summary="d ~ q' = norm(q on the shared tokens); accepted with min(1, p/q')",
    build=build,
    claims=frozenset(Claim),
    examples=({"missing": (0,), "gamma": 2}, {"missing": (1,), "gamma": 2}),
    paper="arXiv 2502.05202, token-level intersection",
    systems=("TLI",),
    needs_training="how many tokens the two vocabularies share",
    reductions=(Reduction("speculative-sampling", "both models share all tokens", {"gamma": 2}, {"gamma": 2}),),
)
