"""Hierarchical speculative decoding: keep the longest prefix of a block that passes a test, from the back (2601.05724).

With ``r_k`` the product of p/q over the first k drafts,

    w_k = r_k / max(1, r_1, .., r_k)
    h_k = A_k / max(A_k, B_k),   A_k = sum_v (w_k p_k(v) - q_k(v))+,   B_k = sum_v (q_k(v) - w_k p_k(v))+

the whole block is kept with probability w_gamma. Otherwise the largest k < gamma that passes a test of probability h_k
is kept, followed by a token from ``norm((w_k p_k - q_k)+)``; k = 0 always passes. The rule is read in the released
code, except for the test of the whole block: there the ratio is not capped, and the law is not p
(``hierarchical-released``). The paper claims the law of p, which the rule has with the cap; the paper's own formula for
this test was not available.

With the cap the rule equals ``block-verification``. ``w_k <= 1`` gives ``A_k - B_k = w_k - 1 <= 0``, so ``h_k =
A_k/(A_k + 1 - w_k)``, and both recursions for w have the solution ``r_k / max(1, r_1, .., r_k)``. The release accepts
more than block verification only because its last test is not capped.
"""

from __future__ import annotations

from typing import Any

from ..coupling import excess_law, flip, positive_part
from ..drafters.model import model_drafter
from ..lengths.constant import constant
from ..models import draft_model
from ..rounds import from_parts
from ..trees import child_pmf
from ..types import (
    Algorithm,
    Claim,
    Draft,
    Draws,
    LanguageModel,
    Parts,
    Pmf,
    Reduction,
    Task,
    Tokens,
    Verified,
    Verifier,
)


def ratios(p: list[Pmf], q: list[Pmf], tokens: Tokens) -> tuple[list[Any], list[Any]]:
    """Return the products r_0 .. r_gamma of p/q over the drafts, and their capped forms w_0 .. w_gamma.

    ``p`` and ``q`` are the rows of the drafts ``tokens``.
    """
    one = p[0].sum() * 0 + 1
    plain, capped, highest = [one], [one], one
    for i, token in enumerate(tokens):
        plain.append(plain[-1] * p[i][token] / q[i][token])
        highest = max(highest, plain[-1])
        capped.append(plain[-1] / highest)
    return plain, capped


def stays(w: Any, p: Pmf, q: Pmf) -> Any:
    """Return h, the probability that a prefix with the capped ratio ``w`` is kept; 1 if the formula is 0/0.

    ``w`` is an entry of the second result of ``ratios``; ``p`` and ``q`` are the rows after the prefix.
    """
    above, below = positive_part(w * p - q).sum(), positive_part(q - w * p).sum()
    return above / max(above, below) if above > 0 or below > 0 else w * 0 + 1


def whole_block(plain: list[Any], capped: list[Any], capped_end: bool) -> Any:
    """Return the probability that all drafts are kept.

    ``plain`` and ``capped`` are the results of ``ratios``. With ``capped_end``, as in the exact rule, the probability
    is the last entry of ``capped``. Otherwise it is the last entry of ``plain``, limited to 1.
    """
    return capped[-1] if capped_end else min(plain[-1], capped[0])


def backward(capped_end: bool) -> Verifier:
    """Return the verifier that keeps the whole block, or else the longest prefix that passes its test.

    The whole block is kept with the probability ``whole_block``: by the capped ratio of the block if ``capped_end``,
    else by its plain ratio.
    """

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
        gamma = len(draft.tokens)
        p = [target(prefix + draft.tokens[:i]) for i in range(gamma + 1)]
        q = [child_pmf(draft, i, p[i]) for i in range(gamma)]
        plain, capped = ratios(p, q, draft.tokens)
        if gamma == 0 or flip(draws, whole_block(plain, capped, capped_end), ("accept", gamma)):
            return Verified((*draft.tokens, draws.categorical(p[gamma], ("bonus",))), gamma)
        kept = gamma - 1
        while kept > 0 and not flip(draws, stays(capped[kept], p[kept], q[kept]), ("accept", kept)):
            kept -= 1
        replaced = draws.categorical(excess_law(capped[kept] * p[kept], q[kept]), ("residual", kept))
        return Verified((*draft.tokens[:kept], replaced), kept)

    return verify


@from_parts
def build(task: Task, gamma: int = 5) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens from q and tests prefixes from the longest to the shortest."""
    return Parts(model_drafter(draft_model(task)), constant(gamma), backward(capped_end=True))


ALGORITHM = Algorithm(
    name="hierarchical",
    summary="accept the whole block by its capped ratio, else the longest prefix that passes its own test h",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"gamma": 2}, {"gamma": 3}),
    paper="arXiv 2601.05724; code: ZhouYuxuanYX/Hierarchical-Speculative-Decoding b8575e2, its last coin capped",
    systems=("HSD",),
    reductions=(
        Reduction("block-verification", "always", {"gamma": 3}, {"gamma": 3}),
        Reduction("speculative-sampling", "gamma = 1", {"gamma": 1}, {"gamma": 1}),
        Reduction("autoregressive", "gamma = 0", {"gamma": 0}),
    ),
)
