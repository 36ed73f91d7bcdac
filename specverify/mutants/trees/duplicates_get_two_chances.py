"""A tree holds a token twice, and each copy is tried with a coin of p(d) of its own: out(d) = 1 - (1 - p(d))^2."""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.mutants.tree_mutants import PAIR, by_siblings, with_tree
from specverify.reference import Draws, Pmf, Site, Tokens, flip
from specverify.reference.drafters.tree import Child, excluding, most_likely
from specverify.reference.tree_rounds import Step


def pick(draws: Draws, q: Pmf, earlier: Tokens, width: int, site: Site) -> Child | None:
    """Take the most probable token, whatever is there already."""
    return most_likely(draws, q, (), width, site)


def rule(draws: Draws, p: Pmf, tokens: Tokens, pmfs: tuple[Pmf, ...], depth: int) -> Step:
    """Keep each candidate with probability p(d), else emit from p without them."""
    for k, token in enumerate(tokens):
        if flip(draws, p[token], ("accept", depth, k)):
            return Step(token, accepted=True)
    rest = excluding(p, tokens)
    return Step(draws.categorical(p if rest is None else rest, ("residual", depth)), accepted=False)


MUTANT = planted(
    "candidate-set",
    "duplicates-get-two-chances",
    "tries equal siblings twice",
    with_tree(by_siblings(rule), pick),
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=PAIR,
)
