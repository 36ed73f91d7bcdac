"""SpecInfer's next sibling is the one the target finds likeliest, not one picked at random."""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.mutants.tree_mutants import by_siblings
from specverify.reference import Decoder, Draws, Pmf, Task, Tokens
from specverify.reference.drafters.sequences import forgetful, sequences_drafter
from specverify.reference.models import draft_model
from specverify.reference.tree_rounds import Step, tree_decoder
from specverify.reference.verifiers.recursive_rejection import try_in_turn


def likeliest_first(draws: Draws, p: Pmf, tokens: Tokens, pmfs: tuple[Pmf, ...], depth: int) -> Step:
    """Try the siblings in the order of p: the order then tells what was drawn."""
    order = sorted(range(len(tokens)), key=lambda k: -p[tokens[k]])
    return try_in_turn(draws, p, tuple(tokens[k] for k in order), tuple(pmfs[k] for k in order), depth)


def build(task: Task, forget: tuple[int, ...] = (0, 1), depth: int = 4) -> Decoder:
    """The sequences of SpecInfer, verified in that order."""
    draft = draft_model(task)
    drafter = sequences_drafter(tuple(forgetful(draft, count) for count in forget), depth)
    return tree_decoder(task, drafter, by_siblings(likeliest_first))


MUTANT = planted(
    "specinfer",
    "likelier-sibling-first",
    "tries the sibling that p finds likeliest first",
    build,
    category="J",
    citation="plausible",
    killed_by="law_is_target",
)
