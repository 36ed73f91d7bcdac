"""Accept each draft with a given probability, else emit a replacement: the form of all relaxed rules.

With d ~ q, acceptance probability a(d) and a replacement law f that does not depend on d, the law of the emitted token
is ``q a + (1 - sum q a) f``. It is p exactly if ``q a <= p`` everywhere and ``f = norm(p - q a)``; any other choice is
biased. If the acceptance ``sum q a`` exceeds ``sum min(p, q)`` by x, the total variation from p is at least x.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..coupling import flip
from ..pmf import one_hot
from ..types import Draft, Draws, LanguageModel, Pmf, Tokens, Verified, Verifier


def accept_or_replace(
    accept: Callable[[Tokens, Pmf, Pmf, int], Any],
    replacement: Callable[[Pmf, Pmf, int], Pmf],
    bonus: Callable[[Pmf], Pmf] = lambda p: p,
) -> Verifier:
    """Return the verifier that accepts draft d with probability ``accept(prefix, p, q, d)``.

    The first rejected draft is replaced by a draw from ``replacement(p, q, d)``; after all drafts a draw from
    ``bonus(p)`` follows. Pmfs are ``[V]``: p is the target's after ``prefix``, and d was drawn from q.
    """

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
        for i, token in enumerate(draft.tokens):
            before = prefix + draft.tokens[:i]
            p, pmf = target(before), draft.pmfs[i]
            q = one_hot(token, like=p) if pmf is None else pmf
            if not flip(draws, accept(before, p, q, token), ("accept", i)):
                replaced = draws.categorical(replacement(p, q, token), ("residual", i))
                return Verified((*draft.tokens[:i], replaced), accepted=i)
        last = draws.categorical(bonus(target(prefix + draft.tokens)), ("bonus",))
        return Verified((*draft.tokens, last), accepted=len(draft.tokens))

    return verify
