"""Entropy verification: accept with p/(t q), t < 1 if the target is uncertain (vllm-ascend).

The rule is that of the option ``enable_entropy_verify`` of vllm-project/vllm-ascend at 182b75e,
``vllm_ascend/sample/rejection_sampler.py``, ``rejection_random_sample_pytorch``. The uniform is multiplied by

    t = min(posterior_threshold, exp(-posterior_alpha H(p)))          H in nats

before it is compared with p(d)/q(d), so a draft is accepted with probability ``min(1, p/(t q))``. This is ``lenience``
with a parameter that follows the entropy. The replacement of a rejected draft comes from ``norm((p - q)+)``, as in
speculative sampling. The threshold is at most 1, by default .95.

The release computes H from p before truncation and adds 1e-10 inside the logarithm; here H is that of the task's p. The
exponential is computed in float64, and the rationals are compared with this float exactly.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from ..coupling import excess_law, positive_part, residual
from ..drafters.model import model_drafter
from ..laws import Split, chain_law
from ..lengths.constant import constant
from ..lengths.gating import entropy
from ..models import draft_model
from ..parameters import parameter
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Pmf, Reduction, Task, Tokens
from ..verifiers.accept_or_replace import accept_or_replace
from .lenience import lenient_probability


def bar(p: Pmf, threshold: Any, alpha: float) -> Any:
    """Return t = min(threshold, exp(-alpha H(p))): a ``Fraction`` if p has fractions, else a float.

    Raises ``ValueError`` unless 0 < ``threshold`` <= 1 and ``alpha`` >= 0.
    """
    if not 0 < threshold <= 1 or not alpha >= 0:
        raise ValueError(f"threshold is {threshold} and alpha {alpha}, expected a number in (0, 1] and one >= 0")
    unsure = math.exp(-alpha * entropy(p))
    return min(parameter(threshold, p), Fraction(unsure) if p.dtype == object else unsure)


@from_parts
def build(task: Task, threshold: Any = 0.95, alpha: float = 0.4, gamma: int = 4) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens from q and accepts each with probability ``min(1, p/(t q))``.

    t is ``min(threshold, exp(-alpha H(p)))``.
    """
    verify = accept_or_replace(
        accept=lambda prefix, p, q, token: lenient_probability(p, q, token, bar(p, threshold, alpha)),
        replacement=lambda p, q, token: residual(p, q),
    )
    return Parts(model_drafter(draft_model(task)), constant(gamma), verify)


def declared_law(
    task: Task, prompt: Tokens, threshold: Any = 0.95, alpha: float = 0.4, gamma: int = 4
) -> dict[Tokens, Any]:
    """Return the law that the algorithm promises, new tokens -> probability; the options are those of ``build``."""

    def position(prefix: Tokens, p: Pmf, q: Pmf) -> Split:
        raised = p / bar(p, threshold, alpha)
        m = raised - positive_part(raised - q)
        return m.tolist(), ((1 - m.sum()) * excess_law(p, q)).tolist()

    return chain_law(task, prompt, gamma, position)


ALGORITHM = Algorithm(
    name="entropy-verification",
    summary="accept with min(1, p/(t q)), t = min(theta, e^(-alpha H(p))), else emit from norm((p - q)+) "
    "(declared bias)",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"threshold": 0.95, "alpha": 0.4, "gamma": 2}, {"threshold": 0.5, "alpha": 0.0, "gamma": 1}),
    paper="code: vllm-project/vllm-ascend 182b75e, vllm_ascend/sample/rejection_sampler.py, ENTROPY_VERIFY",
    declared_law=declared_law,
    systems=("entropy verification",),
    needs_training="the loss of quality by the lost exactness",
    reductions=(
        Reduction(
            "lenience",
            "alpha = 0",
            {"threshold": Fraction(4, 5), "alpha": 0, "gamma": 2},
            {"lenience": Fraction(4, 5), "gamma": 2},
        ),
        Reduction(
            "speculative-sampling", "alpha = 0, theta = 1", {"threshold": 1, "alpha": 0, "gamma": 2}, {"gamma": 2}
        ),
    ),
)
