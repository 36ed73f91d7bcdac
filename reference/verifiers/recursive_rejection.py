"""Recursive rejection sampling of several candidates for one position: repeated speculative sampling.

    r = p;  for every candidate x ~ q_k in the order drawn: accept x with probability min(1, r(x)/q_k(x)),
            else r = norm((r - q_k)+);  if none is accepted, emit from r

Multi-step speculative sampling of SpecInfer (arXiv 2305.09781) has q_k independent of the earlier candidates, with
replacement; RSD (arXiv 2402.14160), Sequoia (arXiv 2402.12374) and EAGLE (arXiv 2401.15077) have q_k = norm(q without
the earlier candidates), without replacement.

The rule is lossless for all p and q_k: r is the law that the token must have after all rejections so far, and the k-th
candidate has the law q_k given those before it. The order must not depend on the tokens: it is the order in which they
were drawn, or, for independent candidates, a random order. Candidates that were not drawn from q_k (a top-k list) are
point masses.

The acceptance is ``1 - prod TV(r_k, q_k)``. With one candidate the rule is speculative sampling. Candidates that are
point masses are accepted with the sum of their probabilities under p. Without replacement, one of K candidates is
always accepted if at most K tokens have q > 0, among them all with p > 0. The rule is not optimal for K > 1: see
``optimal_transport``.
"""

from __future__ import annotations

from typing import Any

from ..coupling import accept_probability, flip, residual, total_variation
from ..pmf import uniform
from ..tree_rounds import Step, descend
from ..types import Draft, Draws, LanguageModel, Pmf, Tokens, Verified


def recursive_rejection(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Try the candidates of each position in the order drawn. If all are rejected, emit a draw from the residual."""
    return descend(draws, target, prefix, draft, try_in_turn)


def try_in_turn(draws: Draws, p: Pmf, tokens: Tokens, pmfs: tuple[Pmf, ...], depth: int) -> Step:
    """Return the first accepted candidate, or a draw from the remaining residual of p.

    ``tokens`` are the candidates of one position, ``pmfs`` their q_k, and ``depth`` is their depth in the tree.
    """
    owed = p
    for k, (token, q) in enumerate(zip(tokens, pmfs, strict=True)):
        if flip(draws, accept_probability(owed, q, token), ("accept", depth, k)):
            return Step(token, accepted=True)
        owed = residual(owed, q)
    return Step(draws.categorical(owed, ("residual", depth)), accepted=False)


def in_random_order(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Verify a draft by trying the candidates of each position in random order (SpecInfer, Algorithm 2, line 29)."""
    return descend(draws, target, prefix, draft, try_at_random)


def try_at_random(draws: Draws, p: Pmf, tokens: Tokens, pmfs: tuple[Pmf, ...], depth: int) -> Step:
    """Return the first accepted candidate, or a draw from the remaining residual of p.

    The candidate tried next is chosen uniformly among the remaining ones. The parameters are those of ``try_in_turn``.
    """
    order: list[int] = []
    while left := [k for k in range(len(tokens)) if k not in order]:
        chosen = draws.categorical(uniform(len(left)), ("next", depth, len(order))) if len(left) > 1 else 0
        order.append(left[chosen])
    return try_in_turn(draws, p, tuple(tokens[k] for k in order), tuple(pmfs[k] for k in order), depth)


def acceptance(p: Pmf, pmfs: tuple[Pmf, ...]) -> Any:
    """Return the probability that a candidate of a position is accepted: ``1 - prod TV(r_k, q_k)``.

    q_k is the law of candidate k, the k-th of ``pmfs``. r_k is the residual of p after the rejection of the candidates
    before k; r_1 is p. The formula holds if no q_k depends on the earlier candidates.
    """
    owed, rejected = p, 1
    for q in pmfs:
        rejected = rejected * total_variation(owed, q)
        owed = residual(owed, q)
    return 1 - rejected
