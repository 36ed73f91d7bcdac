"""SWIFT stops before the token it is unsure of, and drops it with its siblings: what was drawn decides."""

from __future__ import annotations

from typing import Any

from specverify.mutants.mutant import planted
from specverify.reference import Decoder, Draft, Task
from specverify.reference.algorithms.swift import RELEASED, Widths, layer_drafter
from specverify.reference.drafters.self_draft import partial_model
from specverify.reference.models import draft_model
from specverify.reference.tree_rounds import tree_decoder
from specverify.reference.verifiers.recursive_rejection import recursive_rejection


def build(
    task: Task,
    depth: int = 25,
    stop: Any = 0.8,
    widths: Widths = RELEASED,
    sets: tuple[int, ...] = (1, 2, 3),
    layers: int = 4,
    window: int = 32,
) -> Decoder:
    """SWIFT whose last place is taken back where it was the one that stopped the draft."""
    models = [partial_model(task.target, draft_model(task), run, layers) for run in sets]
    drafter = layer_drafter(models, depth, stop, widths, window)

    def propose(*args: Any) -> Draft:
        draft = drafter.propose(*args)
        first = draft.parents.index(draft.parents[-1]) if draft.tokens else 0
        pmf = draft.pmfs[first] if draft.tokens else None
        if pmf is None or pmf[draft.tokens[first]] >= stop:
            return draft
        return Draft(draft.tokens[:first], draft.parents[:first], draft.pmfs[:first])

    return tree_decoder(task, drafter._replace(propose=propose), recursive_rejection)


MUTANT = planted(
    "swift",
    "unsure-candidates-dropped",
    "drops the place at which the draft stopped",
    build,
    category="A",
    citation="plausible",
    killed_by="law_is_target",
    examples=({"depth": 2, "stop": 0.4, "widths": ((-1, 1),), "sets": (0,), "layers": 2, "window": 1},),
)
