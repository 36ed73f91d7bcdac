"""The largest acceptance of any verifier with several candidates: optimal transport with membership cost.

SpecTr (arXiv 2310.15141): couple the set S of candidates, of law Q, with one token y of law p so that P(y in S) is
largest. This is a maximum flow from sets to the tokens in them; its dual is a minimum over sets of tokens (Hu et al.,
arXiv 2502.18779):

    alpha* = min over H of  p(H) + 1 - Q(S inside H)

Both are exponential in general and meant for small K and small vocabularies.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, combinations
from typing import Any, NamedTuple, TypeAlias

from .types import Pmf

TokenSet: TypeAlias = frozenset[int]
SetLaw: TypeAlias = Mapping[TokenSet, Any]
"""Set of candidate tokens -> its probability."""

NEGLIGIBLE = 1e-14
"""Float masses below this are not transported. The law stays exact; the acceptance rate falls by at most that much."""


def candidate_set_law(q: Pmf, count: int, replacement: bool) -> SetLaw:
    """Return the law of the set of ``count`` tokens drawn from q one after the other: set -> probability.

    With ``replacement`` they are drawn independently. Without it, a set has fewer tokens if q is exhausted.
    """
    law: dict[TokenSet, Any] = {}

    def extend(drawn: TokenSet, weight: Any, left: int) -> None:
        free = 1 if replacement else sum((mass for token, mass in possible if token not in drawn), start=0 * q[0])
        if left == 0 or free == 0:
            law[drawn] = law.get(drawn, 0) + weight
            return
        for token, mass in possible:
            if replacement or token not in drawn:
                extend(drawn | {token}, weight * mass / free, left - 1)

    possible = [(token, mass) for token, mass in enumerate(q.tolist()) if mass > 0]
    extend(frozenset(), 1, count)
    return law


def optimum(p: Pmf, sets: SetLaw) -> Any:
    """Return the largest acceptance probability of any lossless verifier whose candidate set S has the law ``sets``.

    It is the minimum over all sets of tokens H of ``p(H) + 1 - P(S is a subset of H)``.
    """
    tokens = range(len(p))
    return min(
        sum((p[token] for token in chosen), start=1 - sum(mass for drawn, mass in sets.items() if drawn <= set(chosen)))
        for chosen in chain.from_iterable(combinations(tokens, size) for size in range(len(p) + 1))
    )


class TransportPlan(NamedTuple):
    """An optimal coupling: ``accepted[S][v]`` is the joint probability of the candidate set S and the token v in S."""

    accepted: Mapping[TokenSet, Mapping[int, Any]]
    owed: tuple[Any, ...]
    """``[vocabulary]``, unnormalised: the law of the emitted token when no candidate is accepted."""


def optimal_plan(p: Pmf, sets: SetLaw) -> TransportPlan:
    """Return a maximum flow from ``sets`` (set -> probability) into p, exact for rationals.

    It is computed by shortest augmenting paths (Edmonds, Karp).
    """
    unused, owed = dict(sets), p.tolist()
    flow: dict[TokenSet, dict[int, Any]] = {drawn: dict.fromkeys(sorted(drawn), 0 * p[0]) for drawn in sets}
    least = 0 if p.dtype == object else NEGLIGIBLE
    while path := _augmenting_path(flow, unused, owed, least):
        giving = [drawn for drawn, _ in path[1:]]
        amount = min(unused[path[0][0]], owed[path[-1][1]])
        amount = min([amount, *(flow[drawn][path[step][1]] for step, drawn in enumerate(giving))])
        for step, (drawn, token) in enumerate(path):
            flow[drawn][token] += amount
            if step:
                flow[drawn][path[step - 1][1]] -= amount
        unused[path[0][0]] -= amount
        owed[path[-1][1]] -= amount
    return TransportPlan(flow, tuple(owed))


def _augmenting_path(
    flow: dict[TokenSet, dict[int, Any]], unused: dict[TokenSet, Any], owed: list[Any], least: float
) -> list[tuple[TokenSet, int]]:
    """Return a path along which ``flow`` can be increased, as pairs (set, token); [] if there is none.

    Along the path each set sends more mass to its token; to the token of the pair before, a set sends less. The first
    set and the last token have unused mass. Masses up to ``least`` are ignored. ``flow[set][token]`` is the moved mass;
    ``unused`` and ``owed`` are the unused masses of the sets and of the tokens.
    """
    came: dict[int, tuple[TokenSet, int | None]] = {}
    frontier: list[tuple[TokenSet, int | None]] = [(drawn, None) for drawn, mass in unused.items() if mass > least]
    seen = {drawn for drawn, _ in frontier}
    while frontier:
        following: list[tuple[TokenSet, int | None]] = []
        for drawn, taken in frontier:
            for token in flow[drawn]:
                if token in came:
                    continue
                came[token] = (drawn, taken)
                if owed[token] > least:
                    return _back(came, token)
                givers = [other for other in flow if other not in seen and flow[other].get(token, 0) > least]
                seen.update(givers)
                following += [(other, token) for other in givers]
        frontier = following
    return []


def _back(came: dict[int, tuple[TokenSet, int | None]], token: int | None) -> list[tuple[TokenSet, int]]:
    path: list[tuple[TokenSet, int]] = []
    while token is not None:
        drawn, before = came[token]
        path.append((drawn, token))
        token = before
    return path[::-1]
