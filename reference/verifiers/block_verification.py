"""Block verification (Sun et al. 2403.10444, Algorithm 2): accept the longest prefix that passes a joint test.

With w the capped likelihood ratio of the drafts so far, and g = gamma,

    w_0 = 1,   w_i = min(1, w_(i-1) p(d_i)/q(d_i))
    h_i = R_i / (R_i + 1 - w_i),   R_i = sum_v (w_i p_i(v) - q_(i+1)(v))+,   h_g = w_g

the accepted length is the largest i that passes a test of probability h_i, or 0 if none does. If the accepted length is
i < g, the next token is drawn from ``norm((w_i p_i - q_(i+1))+)``; after the whole block it is drawn from p.

The rule is lossless. Let A(x) be the probability that the first i drafts are x and all accepted. Then ``A(x) = min(A(x
without its last token) p, q(x))``, where p is the target's probability of the last token. This is never less than for
verification token by token, and is the largest value that rules of this kind allow (Theorem 2 of the paper).
"""

from __future__ import annotations

from typing import Any

from ..coupling import excess_law, flip, positive_part
from ..pmf import one_hot
from ..types import Draft, Draws, LanguageModel, Pmf, Tokens, Verified


def block_verification(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Emit the longest prefix of the drafts whose test succeeds, and one more token.

    Prefixes are tested from the longest to the shortest; the empty one is kept without a test.
    """
    gamma = len(draft.tokens)
    p = [target(prefix + draft.tokens[:i]) for i in range(gamma + 1)]
    q = [one_hot(draft.tokens[i], p[i]) if pmf is None else pmf for i, pmf in enumerate(draft.pmfs)]
    w = capped_ratios(p, q, draft.tokens)
    if gamma == 0 or flip(draws, w[gamma], ("accept", gamma - 1)):
        bonus = draws.categorical(p[gamma], ("bonus",))
        return Verified((*draft.tokens, bonus), accepted=gamma)
    accepted = gamma - 1
    while accepted > 0:
        if flip(draws, pass_probability(w[accepted], p[accepted], q[accepted]), ("accept", accepted - 1)):
            break
        accepted -= 1
    replacement = draws.categorical(excess_law(w[accepted] * p[accepted], q[accepted]), ("residual", accepted))
    return Verified((*draft.tokens[:accepted], replacement), accepted)


def capped_ratios(p: list[Pmf], q: list[Pmf], tokens: Tokens) -> list[Any]:
    """Return w_0 .. w_gamma, the likelihood ratio p/q of each prefix of the drafts, limited to 1 after each draft.

    ``p[i]`` and ``q[i]`` are the rows by which the draft ``tokens[i]`` is tested.
    """
    w = [p[0].sum() * 0 + 1]
    for i, token in enumerate(tokens):
        mass, proposed = w[-1] * p[i][token], q[i][token]
        w.append(mass / proposed if mass < proposed else w[0] if mass > 0 else w[0] * 0)
    return w


def pass_probability(w: Any, p: Pmf, q: Pmf) -> Any:
    """Return the probability h = R / (R + 1 - w) with which a prefix passes its test; 1 in the case 0/0.

    ``w`` is the capped ratio of the prefix, R the sum of (w p - q)+; ``p`` and ``q`` are the rows after the prefix. The
    case 0/0 is w = 1 and p = q.
    """
    spare = positive_part(w * p - q).sum()
    return spare / (spare + 1 - w) if spare > 0 or w < 1 else w
