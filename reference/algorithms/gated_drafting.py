"""Gated drafting: speculative sampling that stops after a token that the drafter's own signals call hard.

The signals are the gates of the edge-cloud guide (note EC in ``docs/errata.md``), see ``lengths.gating``. The hard
token is kept, and the gates decide only the length of a draft. So the output is exact. If no token is hard, this is
``speculative-sampling``; if every token is hard, each round drafts one token.
"""

from __future__ import annotations

from typing import Any

from ..drafters.model import model_drafter
from ..lengths.gating import Gate, gated
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.speculative_sampling import speculative_sampling


@from_parts
def build(
    task: Task, gamma: int = 6, nll: float | None = None, entropy: float | None = 1.733, margin: Any = 0.2
) -> Parts:
    """Return the decoder that drafts at most ``gamma`` tokens, none after a hard token.

    A token d is hard if -ln q(d) > ``nll``, the entropy of q > ``entropy``, or the margin of the two largest entries of
    q < ``margin``; None switches a signal off.
    """
    length = gated(Gate(nll, entropy, margin), gamma)
    return Parts(model_drafter(draft_model(task)), length, speculative_sampling)


ALGORITHM = Algorithm(
    name="gated-drafting",
    summary="speculative sampling; drafting ends after a token of high NLL, high entropy or small margin under q",
    build=build,
    claims=frozenset(Claim),
    examples=({"gamma": 2, "nll": 0.9, "entropy": None, "margin": None}, {"gamma": 3, "entropy": 0.9, "margin": 0.2}),
    paper="edge-cloud guide, Section 4 (gating), as a length rule",
    systems=("gating",),
    reductions=(
        Reduction(
            "speculative-sampling",
            "the gate uses no signal",
            {"gamma": 2, "nll": None, "entropy": None, "margin": None},
            {"gamma": 2},
            shown_by="test_gating.py::test_gates_that_never_fire_are_speculative_sampling_and_gates_that_always_do_draft_one",
        ),
    ),
)
