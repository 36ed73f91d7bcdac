"""LANTERN as released: the acceptance of a token includes its neighbours in the latent space of images (2410.03355).

Jang et al.; the rule is that of jadohu/LANTERN at 3a56e45, ``models/ea_model_anole.py``, ``evaluate_posterior``. A
candidate d (a point mass: ``qx = 1.0``) has ``neighbours`` nearest image codes. Their probabilities are added up,
nearest first, as long as the sum is at most ``delta``; d is accepted with p(d) plus this sum. After a rejection, d and
its ``neighbours + 1`` nearest codes are removed from p, one code more than the acceptance adds (``[:lantern_k + 1]``,
if the table does not hold d itself). The replacement is drawn from the rest of p, or uniformly if nothing is left.

If delta is below every p, the acceptance is p(d), as in sample and match. But the replacement excludes the neighbours,
so the law is still biased.

Three points are simplified. Codes have no latent vectors here: the distance of two codes is that of their numbers, ties
to the lower one. There is one candidate a position, the draft's argmax; the release has a tree of them. Only delta <= 1
is supported; above 1 the release reads delta as a factor.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ..drafters.model import greedy_drafter
from ..laws import Split, chain_law
from ..lengths.constant import constant
from ..limits import greedy_draft
from ..models import draft_model
from ..parameters import parameter
from ..pmf import argmax, one_hot, uniform
from ..rounds import from_parts
from ..types import Algorithm, Parts, Pmf, Reduction, Task, Tokens
from ..verifiers.accept_or_replace import accept_or_replace


def nearest(token: int, size: int) -> Tokens:
    """Return all codes 0 .. ``size`` - 1 except ``token``, in order of their distance to it, the nearest first.

    The distance of two codes is the difference of their numbers. Of two equally near codes the lower is first.
    """
    return tuple(sorted((code for code in range(size) if code != token), key=lambda code: (abs(code - token), code)))


def together(p: Pmf, token: int, neighbours: int, delta: Any) -> Any:
    """Return the acceptance probability of ``token``: its p plus the p of its nearest neighbours.

    At most ``neighbours`` are added, and only as long as their sum is at most ``delta``.
    """
    added = p[token] - p[token]
    for code in nearest(token, len(p))[:neighbours]:
        if added + p[code] > parameter(delta, p):
            break
        added = added + p[code]
    return p[token] + added


def without(p: Pmf, token: int, neighbours: int, delta: Any) -> Pmf:
    """Return the normalised law of the replacement after ``token`` is rejected: p without ``token`` and its neighbours.

    The neighbours are the ``neighbours`` + 1 nearest codes, or none if ``neighbours`` is 0 or the nearest has a
    probability above ``delta``. If no mass is left, the law is uniform.
    """
    closed = {token}
    if neighbours and p[nearest(token, len(p))[0]] <= parameter(delta, p):
        closed |= set(nearest(token, len(p))[: neighbours + 1])
    left = p
    for code in closed:
        left = left * (1 - one_hot(code, p))
    mass = left.sum()
    return left / mass if mass > 0 else uniform(len(p), p)


@from_parts
def build(task: Task, neighbours: int = 1, delta: Any = Fraction(1, 10), gamma: int = 4) -> Parts:
    """Return the decoder that drafts ``gamma`` argmaxes of q and accepts each with its p and the p of its neighbours.

    At most ``neighbours`` nearest codes are added, as long as the sum of their p is at most ``delta``.
    """
    verify = accept_or_replace(
        accept=lambda prefix, p, q, token: together(p, token, neighbours, delta),
        replacement=lambda p, q, token: without(p, token, neighbours, delta),
    )
    return Parts(greedy_drafter(draft_model(task)), constant(gamma), verify)


def declared_law(
    task: Task, prompt: Tokens, neighbours: int = 1, delta: Any = Fraction(1, 10), gamma: int = 4
) -> dict[Tokens, Any]:
    """Return the law that the algorithm promises, new tokens -> probability; the options are those of ``build``."""

    def position(prefix: Tokens, p: Pmf, q: Pmf) -> Split:
        guess = argmax(q)
        stays = together(p, guess, neighbours, delta)
        return (stays * one_hot(guess, p)).tolist(), ((1 - stays) * without(p, guess, neighbours, delta)).tolist()

    return chain_law(task, prompt, gamma, position)


ALGORITHM = Algorithm(
    name="lantern-released",
    summary="accept d with p(d) plus the p of its nearest codes up to delta, else sample p without them "
    "(declared bias)",
    build=build,
    claims=frozenset(),
    examples=(
        {"neighbours": 1, "delta": Fraction(3, 10), "gamma": 2},
        {"neighbours": 2, "delta": Fraction(1, 2), "gamma": 1},
    ),
    paper="arXiv 2410.03355; code: jadohu/LANTERN 3a56e45, models/ea_model_anole.py",
    declared_law=declared_law,
    systems=("LANTERN",),
    needs_training="which image codes look similar",
    reductions=(
        Reduction(
            "sample-and-match",
            "a token has no neighbours, q one-hot",
            {"neighbours": 0, "gamma": 2},
            {"gamma": 2},
            limit=greedy_draft,
        ),
    ),
)
