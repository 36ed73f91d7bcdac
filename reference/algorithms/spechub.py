"""SpecHub: pairs of candidates, one of them always q's top token, and an optimal transport in closed form (2411.05289).

All drafted pairs contain a, the argmax of q. The first token is x ~ q. The second is a; if x is a, it is drawn from q
without a. So the pair (i, a) has probability Q(i, a) = q(i), and (a, i) has probability Q(a, i) = q(a) q(i)/(1 - q(a)).
The released code (MasterGodzilla/Speculative_decoding_OT at 7d592b7, ``EAGLE/eagle/model/utils.py``,
``evaluate_posterior``, and ``cnets.py``, ``sample``) verifies in four steps:

    1. pair (i, a): accept i with p(i)/Q(i, a); the remaining p(i) and Q(i, a) go to the next steps
    2. pair (a, i): accept i with the remaining p(i) over Q(a, i); the remaining masses go on
    3. pair (a, i): accept a with p(a) over the remaining mass of the pairs (a, i)
    4. pair (i, a): accept a with the remaining p(a) over the remaining mass of the pairs (i, a)

If none is accepted, the token is drawn from the rest of p. Each step moves as much mass as both sides have, so the rule
is lossless. The release accepts a without a draw if p(a) > .999, which is not lossless, and raises q to at least
exp(-100). Neither is done here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..coupling import flip, positive_part
from ..drafters.model import stateless
from ..drafters.tree import excluding
from ..models import draft_model
from ..pmf import argmax, one_hot
from ..tree_rounds import Step, descend, tree_decoder
from ..types import (
    Algorithm,
    Claim,
    Decoder,
    Draft,
    Drafter,
    Draws,
    LanguageModel,
    Pmf,
    Reduction,
    Task,
    Tokens,
)


def hub_drafter(draft: LanguageModel, depth: int) -> Drafter:
    """Return a drafter of pairs: a tree in which each node has two children, ``depth`` levels deep.

    A node has one child if the argmax of q has probability 1 there. Each round calls the drafter with a gamma; if it is
    smaller than ``depth``, the tree has gamma levels.
    """

    def propose(draws: Draws, _: object, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        grown = Draft((), (), ())
        level: list[tuple[int, Tokens]] = [(-1, ())]
        for _level in range(min(depth, gamma)):
            below: list[tuple[int, Tokens]] = []
            for parent, path in level:
                q = draft(prefix + path)
                hub, site = argmax(q), ("draft", len(grown.tokens))
                first = draws.categorical(q, site)
                rest = excluding(q, (hub,)) if first == hub else one_hot(hub, q)
                pair = [(first, q)]
                if rest is not None:
                    pair.append((draws.categorical(rest, (*site, "second")) if first == hub else hub, rest))
                for token, pmf in pair:
                    below.append((len(grown.tokens), (*path, token)))
                    grown = Draft((*grown.tokens, token), (*grown.parents, parent), (*grown.pmfs, pmf))
            level = below
        return grown

    return Drafter(init=stateless, propose=propose, observe=stateless)


def over(mass: Any, proposed: Any) -> Any:
    """Return ``min(1, mass/proposed)``, the acceptance probability of a proposed token; 0 if ``proposed`` is 0."""
    return mass * 0 if not proposed > 0 else mass / proposed if mass < proposed else mass * 0 + 1


def through_the_hub(draws: Draws, p: Pmf, tokens: Tokens, pmfs: tuple[Pmf, ...], depth: int) -> Step:
    """Verify the candidates of one position, usually a pair, in the four steps of the module's docstring.

    ``tokens`` are the candidates, ``pmfs`` their rows of q, ``depth`` is their depth in the tree. The argmax of q is
    the only candidate if its probability is 1.
    """
    q = pmfs[0]
    hub = argmax(q)
    at_hub = one_hot(hub, p)
    first_pairs = q * (1 - at_hub)
    rest = excluding(q, (hub,))
    second_pairs = first_pairs if rest is None else q[hub] * rest
    others, owed_hub = p * (1 - at_hub), p[hub]
    first_is_hub = tokens[0] == hub
    other = tokens[1] if first_is_hub and len(tokens) > 1 else tokens[0]

    def accepts(chance: Any, step: str) -> bool:
        return flip(draws, chance, ("accept", depth, step))

    if not first_is_hub and accepts(over(others[other], first_pairs[other]), "first"):
        return Step(other, accepted=True)
    others, first_left = positive_part(others - first_pairs), positive_part(first_pairs - others).sum()
    if first_is_hub and len(tokens) > 1 and accepts(over(others[other], second_pairs[other]), "second"):
        return Step(other, accepted=True)
    others, second_left = positive_part(others - second_pairs), positive_part(second_pairs - others).sum()
    second_left = q[hub] if rest is None else second_left
    if first_is_hub and accepts(over(owed_hub, second_left), "hub"):
        return Step(hub, accepted=True)
    owed_hub = max(owed_hub - second_left, 0 * owed_hub)
    if not first_is_hub and accepts(over(owed_hub, first_left), "hub"):
        return Step(hub, accepted=True)
    owed = others + max(owed_hub - first_left, 0 * owed_hub) * at_hub
    mass = owed.sum()
    return Step(draws.categorical(owed / mass if mass > 0 else p, ("residual", depth)), accepted=False)


def build(task: Task, depth: int = 4) -> Decoder:
    """Return the decoder that drafts two candidates at each position, of which one is the argmax of q.

    The tree has ``depth`` levels; each candidate has two candidates below it.
    """
    return tree_decoder(task, hub_drafter(draft_model(task), depth), partial(descend, rule=through_the_hub))


ALGORITHM = Algorithm(
    name="spechub",
    summary="pairs with the draft's top token a: first the other token's share, then a's share, then the rest of p",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"depth": 1},),
    paper="arXiv 2411.05289; code: MasterGodzilla/Speculative_decoding_OT 7d592b7, EAGLE/eagle/model/utils.py",
    systems=("SpecHub",),
    reductions=(
        Reduction("autoregressive", "depth = 0", {"depth": 0}),
        Reduction(
            "rsd",
            "a vocabulary of two tokens, so that a pair is the vocabulary",
            {"depth": 1},
            {"branching": (2,)},
            vocabulary=2,
            rounds=False,
        ),
    ),
)
