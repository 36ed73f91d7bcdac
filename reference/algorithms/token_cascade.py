"""The token-specific speculative cascade relative to the target's best token (Narasimhan et al. 2405.19261, eq. 15).

With T = {v: p(v) >= (1 - alpha) max p}, the mixed model is ``pi = q 1[T] + q(not T) p``, and exact speculative sampling
of pi is used. In law this equals "accept d iff d is in T, else draw from p". alpha < 1 keeps tokens of target
probability 0 out of T, so the output is supported by p, and greedy on one-hot targets. alpha = 0 keeps only the argmax
and its ties; it is not lossless.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

from ..drafters.model import model_drafter
from ..laws import autoregressive_law
from ..lengths.constant import constant
from ..limits import greedy_target
from ..models import draft_model
from ..parameters import parameter
from ..pmf import checked_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, LanguageModel, Parts, Pmf, Reduction, Task, Tokens
from ..verifiers.speculative_sampling import speculative_sampling


def cascade(task: Task, alpha: Any) -> LanguageModel:
    """Return the language model pi = q 1[T] + q(not T) p, with T = {v: p(v) >= (1 - alpha) max p}.

    p is the target and q the draft model of ``task``. Raises ``ValueError`` unless 0 <= alpha < 1.
    """
    if not 0 <= alpha < 1:
        raise ValueError(f"alpha is {alpha}, expected a number in [0, 1)")
    target, draft = checked_model(task.target, "target"), draft_model(task)

    @lru_cache(maxsize=4096)
    def mixed(tokens: Tokens) -> Pmf:
        p = target(tokens)
        kept = draft(tokens) * (p >= p.max() * (1 - parameter(alpha, p)))
        return kept + (1 - kept.sum()) * p

    return mixed


@from_parts
def build(task: Task, alpha: Any = Fraction(1, 2), gamma: int = 4) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens from q and verifies them against pi by speculative sampling.

    pi is q on the tokens with p(v) >= (1 - ``alpha``) max p; the rest of its mass is distributed as p (see
    ``cascade``).
    """
    pi = cascade(task, alpha)
    return Parts(model_drafter(draft_model(task)), constant(gamma), speculative_sampling, target=pi)


def declared_law(task: Task, prompt: Tokens, alpha: Any = Fraction(1, 2), gamma: int = 4) -> dict[Tokens, Any]:
    """Return the law that the algorithm promises, new tokens -> probability: that of plain decoding from ``cascade``.

    It is the same for every gamma. The options are those of ``build``.
    """
    return autoregressive_law(cascade(task, alpha), task, prompt)


ALGORITHM = Algorithm(
    name="token-cascade",
    summary="accept d if p(d) >= (1 - alpha) max p, else sample p; speculative sampling of this mixture pi "
    "(declared bias)",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"alpha": Fraction(1, 4), "gamma": 1}, {"alpha": Fraction(2, 3), "gamma": 2}),
    paper="arXiv 2405.19261, equation 15",
    declared_law=declared_law,
    systems=("speculative cascades",),
    reductions=(
        Reduction(
            "speculative-sampling", "alpha = 0, p one-hot", {"alpha": 0, "gamma": 2}, {"gamma": 2}, limit=greedy_target
        ),
    ),
)
