"""Two-step selection accepts its choice with min(1, p/q): what was chosen has not the law q."""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.mutants.tree_mutants import PAIR, by_siblings
from specverify.reference import Decoder, Draws, Pmf, Task, Tokens, accept_probability, flip, residual
from specverify.reference.algorithms.canonical_selection import selection
from specverify.reference.drafters.tree import independent, tree_drafter
from specverify.reference.models import draft_model
from specverify.reference.tree_rounds import Step, tree_decoder
from specverify.reference.trees import regular_tree


def choose_then_accept(draws: Draws, p: Pmf, tokens: Tokens, pmfs: tuple[Pmf, ...], depth: int) -> Step:
    """Forget that the choice among candidates has changed the law."""
    q = pmfs[0]
    chosen, _ = selection(p, q, len(tokens), 0)
    token = draws.categorical(chosen[frozenset(tokens)], ("choose", depth))
    if flip(draws, accept_probability(p, q, token), ("accept", depth)):
        return Step(token, accepted=True)
    return Step(draws.categorical(residual(p, q), ("residual", depth)), accepted=False)


def build(task: Task, branching: tuple[int, ...] = (2, 1)) -> Decoder:
    """The candidates of two-step selection, decided so."""
    drafter = tree_drafter(draft_model(task), regular_tree(branching), independent)
    return tree_decoder(task, drafter, by_siblings(choose_then_accept))


MUTANT = planted(
    "canonical-selection",
    "choice-accepted-against-q",
    "accepts the choice with p/q, not with p over the law of the choice",
    build,
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=PAIR,
)
