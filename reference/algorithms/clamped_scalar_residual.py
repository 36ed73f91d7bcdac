"""The residual of a verifier that receives only the number q(d): ``norm((p - 1[d] q(d))+)``.

Not lossless: ``declared_law`` returns the law of the output. A rejection implies q(d) > p(d), so the residual is p
without d. The rule is exact for a vocabulary of two tokens, where q(d) determines q. For larger vocabularies no
verifier that receives only (p, d, q(d)) is lossless and accepts more than sample-and-match. A drafted position emits
token v with probability ``min(p, q)(v) + p(v) sum_(y != v) (q - p)+(y) / (1 - p(y))``.
"""

from __future__ import annotations

from typing import Any

from ..coupling import accept_probability, excess_law, positive_part
from ..drafters.model import model_drafter
from ..laws import Split, chain_law
from ..lengths.constant import constant
from ..models import draft_model
from ..pmf import one_hot
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Pmf, Reduction, Task, Tokens
from ..verifiers.accept_or_replace import accept_or_replace


@from_parts
def build(task: Task, gamma: int = 4) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens from q and gives the verifier only q(d) of each draft d."""
    verify = accept_or_replace(
        accept=lambda prefix, p, q, token: accept_probability(p, q, token),
        replacement=lambda p, q, token: excess_law(p, one_hot(token, p) * q[token]),
    )
    return Parts(model_drafter(draft_model(task)), constant(gamma), verify)


def declared_law(task: Task, prompt: Tokens, gamma: int = 4) -> dict[Tokens, Any]:
    """Return the law that the algorithm promises, new tokens -> probability; the options are those of ``build``."""

    def position(prefix: Tokens, p: Pmf, q: Pmf) -> Split:
        rejected = positive_part(q - p).tolist()
        shares = [mass / (1 - p[token]) if mass > 0 else mass for token, mass in enumerate(rejected)]
        total = sum(shares)
        return (q - positive_part(q - p)).tolist(), [p[token] * (total - share) for token, share in enumerate(shares)]

    return chain_law(task, prompt, gamma, position)


ALGORITHM = Algorithm(
    name="clamped-scalar-residual",
    summary="accept with min(1, p/q), else emit from p without d (declared bias)",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"gamma": 1}, {"gamma": 2}),
    paper="edge-cloud guide, Section 3.1; the first release of EAGLE (arXiv 2401.15077)",
    declared_law=declared_law,
    systems=("EAGLE's first release",),
    reductions=(
        Reduction(
            "speculative-sampling",
            "a vocabulary of two tokens",
            {"gamma": 2},
            {"gamma": 2},
            vocabulary=2,
            shown_by="test_limits_of_declared_biases.py::test_the_clamped_scalar_residual_is_lossless_for_two_tokens",
        ),
    ),
)
