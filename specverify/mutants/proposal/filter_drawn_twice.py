"""A random filter decides on each use of q anew: the draft is drawn under one decision, q declared under another."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from specverify.mutants.mutant import SHORT, planted
from specverify.reference import (
    Draft,
    Draws,
    LanguageModel,
    Parts,
    Pmf,
    Task,
    Tokens,
    argmax,
    chain,
    constant,
    flip,
    from_parts,
    model_drafter,
)
from specverify.reference.drafters.tree import excluding
from specverify.reference.models import draft_model
from specverify.reference.verifiers.speculative_sampling import speculative_sampling


def filtered(draws: Draws, q: Pmf, site: tuple[Any, ...]) -> Pmf:
    """Return q without its most probable token, half of the time and if others are left."""
    rest = excluding(q, (argmax(q),))
    return rest if rest is not None and flip(draws, Fraction(1, 2), site) else q


@from_parts
def build(task: Task, gamma: int = 4) -> Parts:
    """Speculative sampling with the top choice of q excluded at random, twice."""
    draft: LanguageModel = draft_model(task)

    def propose(draws: Draws, state: Any, prefix: Tokens, count: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        tokens: Tokens = ()
        pmfs: tuple[Pmf, ...] = ()
        while len(tokens) < count:
            q, place = draft(prefix + tokens), len(tokens)
            tokens = (*tokens, draws.categorical(filtered(draws, q, ("filter", place)), ("draft", place)))
            pmfs = (*pmfs, filtered(draws, q, ("filter again", place)))
        return chain(tokens, pmfs)

    return Parts(model_drafter(draft)._replace(propose=propose), constant(gamma), speculative_sampling)


MUTANT = planted(
    "speculative-sampling",
    "filter-drawn-twice",
    "decides XTC anew for the declared q",
    build,
    category="B",
    citation="mlx-lm commit cb92766f (MTP branch)",
    killed_by="draft_is_honest",
    examples=SHORT,
)
