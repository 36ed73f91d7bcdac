"""A tree holds a token twice, and each copy is tried with a coin of p(d) of its own: out(d) = 1 - (1 - p(d))^2."""

from __future__ import annotations

from reference import Decoder, Draft, Draws, LanguageModel, Pmf, Site, Task, Tokens, Verified, flip
from reference.drafters.tree import Child, excluding, most_likely, tree_drafter
from reference.models import draft_model
from reference.tree_rounds import Step, descend, tree_decoder
from reference.trees import regular_tree
from specverify.mutants.mutant import planted


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


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Apply the rule level by level."""
    return descend(draws, target, prefix, draft, rule)


def build(task: Task, branching: tuple[int, ...] = (2, 2, 1)) -> Decoder:
    """A tree with that rule."""
    return tree_decoder(task, tree_drafter(draft_model(task), regular_tree(branching), pick), verify)


MUTANT = planted(
    "candidate-set",
    "duplicates-get-two-chances",
    "tries equal siblings twice",
    build,
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=({"branching": (2,)},),
)
