"""Speculative sampling without the residual: after a rejection the token is drawn from p.

Not lossless: ``declared_law`` returns the law of the output. This is the "skip the sample adjustment" shortcut of
tutorials and edge-cloud guides. The law of a drafted token is ``min(p, q) + TV(p, q) p``, which differs from p by ``TV
p - (p - q)+``: a token with p > q stays too rare. The acceptance rate is that of speculative sampling, so only the law
shows the defect.
"""

from __future__ import annotations

from typing import Any

from ..coupling import accept_probability, positive_part, total_variation
from ..drafters.model import model_drafter
from ..laws import Split, chain_law
from ..lengths.constant import constant
from ..limits import greedy_target, perfect_draft
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Pmf, Reduction, Task, Tokens
from ..verifiers.accept_or_replace import accept_or_replace


@from_parts
def build(task: Task, gamma: int = 4) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens from q and draws from p after a rejection."""
    verify = accept_or_replace(
        accept=lambda prefix, p, q, token: accept_probability(p, q, token),
        replacement=lambda p, q, token: p,
    )
    return Parts(model_drafter(draft_model(task)), constant(gamma), verify)


def declared_law(task: Task, prompt: Tokens, gamma: int = 4) -> dict[Tokens, Any]:
    """Return the law that the algorithm promises, new tokens -> probability; the options are those of ``build``."""

    def position(prefix: Tokens, p: Pmf, q: Pmf) -> Split:
        return (p - positive_part(p - q)).tolist(), (total_variation(p, q) * p).tolist()

    return chain_law(task, prompt, gamma, position)


ALGORITHM = Algorithm(
    name="resample-from-target",
    summary="accept with min(1, p/q), else sample p (declared bias)",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"gamma": 1}, {"gamma": 2}),
    paper="edge-cloud guide, Section 3.2 (shortcut); the option that skips the sample adjustment",
    declared_law=declared_law,
    reductions=(
        Reduction("speculative-sampling", "q = p", {"gamma": 2}, {"gamma": 2}, limit=perfect_draft),
        Reduction("speculative-sampling", "p one-hot", {"gamma": 2}, {"gamma": 2}, limit=greedy_target),
    ),
)
