"""Medusa's typical mode with ``fast=False``: drafts are matched with draws from a truncated p.

Not lossless: ``declared_law`` returns the law of the output. Let t be p restricted to the tokens at or above the
typical threshold. In FasterDecoding/Medusa at e2a5d20, ``medusa/model/utils.py``, ``get_typical_posterior_mask`` draws
z ~ t at every row and accepts a draft while z is the draft; the token after the last accepted draft is drawn by
``get_typical_one_token``, from t again, and is not the z that differed. So a draft d comes out with probability ``t(d)
+ (1 - t(d)) t(d)`` if it was drafted: the law is neither p nor t.

It cannot be run as released: ``evaluate_posterior`` passes six arguments to ``get_typical_posterior_mask``, which takes
five, and ends in a ``TypeError``. This algorithm implements the intended code. The release draws z independently for
several paths; here there is one path.
"""

from __future__ import annotations

from typing import Any

from ..drafters.model import model_drafter
from ..laws import Split, chain_law
from ..lengths.constant import constant
from ..limits import greedy_target
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Pmf, Reduction, Task, Tokens
from ..verifiers.accept_or_replace import accept_or_replace
from .typical_acceptance import typical_threshold


def typical_part(p: Pmf, epsilon: float, delta: float) -> Pmf:
    """Return t, the pmf ``[V]``: p restricted to the tokens at or above the threshold, or to the argmax if none is.

    The threshold is ``min(epsilon, delta exp(-H(p)))``, with the entropy H.
    """
    kept = p * (p >= min(typical_threshold(p, epsilon, delta), p.max()))
    return kept / kept.sum()


@from_parts
def build(task: Task, epsilon: float = 0.09, delta: float = 0.3, gamma: int = 4) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens from q, matches them with draws from t, then draws from t.

    t is p restricted to its typical tokens, those of probability at least ``min(epsilon, delta exp(-H(p)))``.
    """

    def part(p: Pmf) -> Pmf:
        return typical_part(p, epsilon, delta)

    verify = accept_or_replace(
        accept=lambda prefix, p, q, token: part(p)[token],
        replacement=lambda p, q, token: part(p),
        bonus=part,
    )
    return Parts(model_drafter(draft_model(task)), constant(gamma), verify)


def declared_law(
    task: Task, prompt: Tokens, epsilon: float = 0.09, delta: float = 0.3, gamma: int = 4
) -> dict[Tokens, Any]:
    """Return the law that the algorithm promises, new tokens -> probability; the options are those of ``build``."""

    def position(prefix: Tokens, p: Pmf, q: Pmf) -> Split:
        part = typical_part(p, epsilon, delta)
        matched = q * part
        return matched.tolist(), ((1 - matched.sum()) * part).tolist()

    return chain_law(task, prompt, gamma, position, bonus=lambda p: typical_part(p, epsilon, delta))


ALGORITHM = Algorithm(
    name="typical-sampling-released",
    summary="draw z ~ p among typical tokens, accept d while z = d, then draw again (declared bias)",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"epsilon": 0.4, "delta": 0.8, "gamma": 2}, {"epsilon": 0.1, "delta": 0.8, "gamma": 1}),
    paper="FasterDecoding/Medusa e2a5d20, medusa/model/utils.py, get_typical_posterior_mask (fast=False)",
    declared_law=declared_law,
    systems=("Medusa",),
    needs_training="the loss of quality by the lost exactness",
    reductions=(Reduction("greedy-speculation", "p one-hot", {"gamma": 2}, {"gamma": 2}, limit=greedy_target),),
)
