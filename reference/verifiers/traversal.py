"""Traversal verification (arXiv 2505.12398): from the leaves to the root, a path is accepted as a whole.

Enter a node u with weight a, P = p(.|u) and the law q of its first child:

    for every child v in the order drawn:
        enter v with weight min(1, a P(v)/q(v)); if something is accepted there, that is the result
        R = sum (a P - q)+;  P = norm((a P - q)+);  a = R/(R + 1 - a);  q = the next child's law
    with probability a the path to u is accepted and one more token is drawn from P, else nothing at u is accepted

A subtree entered with weight a accepts with probability exactly a (by induction over its children), and the root has
weight 1. Lossless with and without replacement. A chain is block verification (arXiv 2403.10444), one level of siblings
is recursive rejection; for other trees it accepts at least as many tokens, since a child that would be rejected alone
may be accepted if its continuation is likely. An exception are equal siblings, drawn with replacement, that have
children: recursive rejection continues among the children of both, and may accept more. The paper's pseudocode was not
available: the recursion was derived anew, and checked by enumeration and against the paper's stated limits.
"""

from __future__ import annotations

from typing import Any

from ..coupling import accept_probability, flip, positive_part
from ..trees import child_pmf, children, path_tokens
from ..types import Draft, Draws, LanguageModel, Tokens, Verified


def traversal(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Test paths from the leaves to the root; emit the longest accepted path and one more token."""

    def enter(node: int, weight: Any) -> Verified | None:
        text = path_tokens(draft, node)
        owed = target(prefix + text)
        for child in children(draft.parents, (node,)):
            q = child_pmf(draft, child, owed)
            result = enter(child, accept_probability(weight * owed, q, draft.tokens[child]))
            if result:
                return result
            excess = positive_part(weight * owed - q)
            mass = excess.sum()
            if mass > 0:
                owed, weight = excess / mass, mass / (mass + (1 - weight))  # never above 1, in floats too
            else:
                weight = weight if node < 0 else mass
        if node < 0 or flip(draws, weight, ("accept", node)):
            return Verified((*text, draws.categorical(owed, ("bonus", node))), accepted=len(text))
        return None

    result = enter(-1, 1)
    assert result is not None
    return result
