"""A draft model fills a tree of fixed shape, node by node; each method picks the children of a node in its own way.

The shape is fixed before any draw (or a function of the text so far). This is a condition of losslessness: the number
of children of a node may not depend on their tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple, TypeAlias

from ..coupling import positive_part
from ..kv_cache import tree_depths
from ..pmf import one_hot, top_tokens, uniform
from ..types import Draft, Drafter, Draws, LanguageModel, Pmf, Site, Tokens
from .model import stateless


class Child(NamedTuple):
    """A child chosen for a node: its token, and the pmf from which it was drawn, None for a point mass."""

    token: int
    pmf: Pmf | None


Pick: TypeAlias = Callable[[Draws, Pmf, Tokens, int, Site], Child | None]
"""``pick(draws, q, earlier, width, site)``: draw one more child of a node that shall have ``width`` children, after the
children ``earlier``; None if there is no further candidate."""


def tree_drafter(draft: LanguageModel, parents: Tokens, pick: Pick) -> Drafter:
    """Return a drafter of a tree of the shape ``parents``, cut at depth gamma.

    ``pick(draws, q, earlier, width, site)`` chooses each child. q is the row of ``draft`` after the parent, ``earlier``
    are the earlier of its ``width`` siblings, and ``site`` names the draw. If ``pick`` returns None, the child and all
    nodes below it are left out.
    """
    depths = tree_depths(parents)

    def propose(draws: Draws, _: Hashable, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        grown = Draft((), (), ())
        place, text = {-1: -1}, {-1: prefix}
        rows: dict[int, Pmf] = {}
        for node, parent in enumerate(parents):
            if depths[node] >= gamma or parent not in place:
                continue
            above = place[parent]
            if parent not in rows:
                rows[parent] = draft(text[parent])
            earlier = tuple(token for token, up in zip(grown.tokens, grown.parents, strict=True) if up == above)
            child = pick(draws, rows[parent], earlier, parents.count(parent), ("draft", node))
            if child is None:
                continue
            place[node], text[node] = len(grown.tokens), (*text[parent], child.token)
            grown = Draft((*grown.tokens, child.token), (*grown.parents, above), (*grown.pmfs, child.pmf))
        return grown

    return Drafter(init=stateless, propose=propose, observe=stateless)


def independent(draws: Draws, q: Pmf, earlier: Tokens, width: int, site: Site) -> Child | None:
    """Return a child drawn from q, independent of its siblings (SpecInfer, arXiv 2305.09781; SpecTr, 2310.15141).

    The other siblings (``earlier``, ``width``) have no effect. ``site`` names the draw.
    """
    return Child(draws.categorical(q, site), q)


def without_replacement(draws: Draws, q: Pmf, earlier: Tokens, width: int, site: Site) -> Child | None:
    """Return a child drawn from q without the ``earlier`` siblings; None if nothing is left (RSD, arXiv 2402.14160).

    Drawing all siblings at once by an exponential race, as Sequoia does, gives the same law. ``width``, the number of
    siblings, has no effect.
    """
    left = excluding(q, earlier)
    return None if left is None else Child(draws.categorical(left, site), left)


def without_replacement_then_uniform(draws: Draws, q: Pmf, earlier: Tokens, width: int, site: Site) -> Child | None:
    """Return a child drawn from q without the ``earlier`` siblings, or uniformly if q has no other token.

    This is Sequoia, arXiv 2402.12374, Algorithm 2, lines 12 to 16. Returns None if all tokens are siblings. ``width``,
    the number of siblings, has no effect.
    """
    left = excluding(q, earlier)
    if left is None:
        left = excluding(uniform(len(q), q), earlier)
    return None if left is None else Child(draws.categorical(left, site), left)


def most_likely(draws: Draws, q: Pmf, earlier: Tokens, width: int, site: Site) -> Child | None:
    """Return the most probable token of q that is not one of the ``earlier`` siblings; ties go to lower ids.

    The result is None if q has no other token. Nothing is drawn, and ``width``, the number of siblings, has no effect.
    """
    ranked = top_tokens(q, len(earlier) + 1)
    return Child(ranked[-1], None) if len(ranked) > len(earlier) else None


def sampled_then_most_likely(draws: Draws, q: Pmf, earlier: Tokens, width: int, site: Site) -> Child | None:
    """Return the next of ``width`` siblings: first a token drawn from q outside its top tokens, then the top tokens.

    ``earlier`` are the siblings so far. The top tokens are the ``width - 1`` most probable ones (arXiv 2502.18779). If
    q has no other tokens, nothing is drawn. Returns None if no sibling is left.
    """
    top = top_tokens(q, width - 1)
    rest = excluding(q, top)
    if rest is not None and not earlier:
        return Child(draws.categorical(rest, site), rest)
    taken = len(earlier) - (rest is not None)
    return Child(top[taken], None) if taken < len(top) else None


def excluding(q: Pmf, tokens: Tokens) -> Pmf | None:
    """Return q without ``tokens``, normalised; None if no mass remains."""
    for token in tokens:
        q = positive_part(q - one_hot(token, q))
    mass = q.sum()
    if not mass > 0:
        return None
    return q / mass if tokens else q
