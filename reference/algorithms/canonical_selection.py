"""Two-step sampling of several candidates: choose one, then speculative sampling (Khisti et al. 2410.18234).

Step one picks x from the set S of candidates with a probability beta(x | S). Let p_I be the law of x over all sets S.
Step two accepts x with ``min(1, p(x)/p_I(x))`` and otherwise emits a draw from ``norm((p - p_I)+)``. This is lossless
for every beta. By the paper's decomposition theorem the best beta accepts as often as the optimal transport of
``transport-optimum``.

Here beta is computed from an optimal transport plan: beta(x | S) is proportional to the mass that the plan moves from S
to x, and the mass of S that is rejected is added to the smallest token of S. Then ``min(p(x), p_I(x))`` is the mass
with which the plan accepts x. For K independent candidates the acceptance is

    min over sets of tokens H of  p(H) + 1 - q(H)^K

which the paper states for K = 2. Not covered: the paper's truncated programmes for large vocabularies. (Global
Resolution, arXiv 2511.15898, computes the same optimum for independent candidates by convex minimisation; its algorithm
was not available.)
"""

from __future__ import annotations

from functools import partial
from itertools import chain, combinations
from typing import Any

import numpy as np

from ..coupling import accept_probability, flip, residual
from ..drafters.tree import independent, tree_drafter
from ..models import draft_model
from ..remembered import by_values
from ..transport import TokenSet, candidate_set_law, optimal_plan
from ..tree_rounds import Step, descend, tree_decoder
from ..trees import regular_tree
from ..types import Algorithm, Claim, Decoder, Draws, Pmf, Reduction, Task, Tokens


@by_values
def selection(p: Pmf, q: Pmf, count: int, _: int) -> tuple[dict[TokenSet, Pmf], Pmf]:
    """Return the selection probabilities beta of each candidate set, and the law p_I of the selected token.

    beta is a dict: set S of at most ``count`` tokens, drawn from q -> pmf ``[V]`` of the token selected from S. The
    last parameter is not used.
    """
    sets = candidate_set_law(q, count, replacement=True)
    plan = optimal_plan(p, sets)
    chosen, intermediate = {}, p - p
    for drawn, mass in sets.items():
        given = [plan.accepted[drawn].get(token, 0 * mass) for token in range(len(p))]
        given[min(drawn)] += max(mass - sum(given), 0 * mass)
        row = np.array(given, dtype=p.dtype)
        chosen[drawn], intermediate = row / row.sum(), intermediate + row
    return chosen, intermediate / intermediate.sum()


def choose_then_accept(draws: Draws, p: Pmf, tokens: Tokens, pmfs: tuple[Pmf, ...], depth: int) -> Step:
    """Return the token of one position: a selected candidate if it is accepted, else a draw from ``norm((p - p_I)+)``.

    The candidate x is selected by the probabilities beta of ``selection``, and accepted with min(1, p(x)/p_I(x)), where
    p_I is the law of x. ``tokens`` are the candidates, ``pmfs`` the equal rows of q, ``depth`` is their depth in the
    tree.
    """
    chosen, intermediate = selection(p, pmfs[0], len(tokens), 0)
    token = draws.categorical(chosen[frozenset(tokens)], ("choose", depth))
    if flip(draws, accept_probability(p, intermediate, token), ("accept", depth)):
        return Step(token, accepted=True)
    return Step(draws.categorical(residual(p, intermediate), ("residual", depth)), accepted=False)


def acceptance(p: Pmf, q: Pmf, count: int) -> Any:
    """Return the acceptance probability of ``count`` independent candidates from q, by the closed form.

    It is the minimum over all sets of tokens H of ``p(H) + 1 - q(H)^count``.
    """
    tokens = range(len(p))
    every = chain.from_iterable(combinations(tokens, size) for size in range(len(p) + 1))
    return min(p[list(chosen)].sum() + 1 - q[list(chosen)].sum() ** count for chosen in every)


def build(task: Task, branching: tuple[int, ...] = (2, 1)) -> Decoder:
    """Return the decoder that drafts a tree of independent children.

    The root has ``branching[0]`` children, each of these has ``branching[1]`` children, and so on.
    """
    drafter = tree_drafter(draft_model(task), regular_tree(branching), independent)
    return tree_decoder(task, drafter, partial(descend, rule=choose_then_accept))


ALGORITHM = Algorithm(
    name="canonical-selection",
    summary="select a candidate x by weights of the set; accept it with min(1, p/p_I), where p_I is the law of x",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"branching": (2,)},),
    paper="arXiv 2410.18234, canonical decomposition (Theorem 1)",
    systems=("canonical importance sampling",),
    reductions=(
        Reduction(
            "transport-optimum",
            "with replacement=True of `transport-optimum`",
            {"branching": (2, 1)},
            {"branching": (2, 1), "replacement": True},
        ),
        Reduction("speculative-sampling", "one child per node", {"branching": (1, 1)}, {"gamma": 2}),
    ),
)
