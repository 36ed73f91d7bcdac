"""Dynamic k: speculative sampling whose draft length k follows the last round's share of accepted drafts.

The rule for k is that of the edge-cloud guide (note EC in ``docs/errata.md``).
"""

from __future__ import annotations

from ..drafters.model import model_drafter
from ..lengths.accepted_ratio import accepted_ratio
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.speculative_sampling import speculative_sampling


@from_parts
def build(task: Task, start: int = 6, minimum: int = 3, maximum: int = 12) -> Parts:
    """Return the decoder that drafts k tokens in a round, with k = ``start`` in the first round.

    k grows by 1 if at least .8 of the last round's drafts were accepted, and shrinks by 1 if at most .4 were, within
    ``minimum`` and ``maximum``.
    """
    length = accepted_ratio(start, minimum, maximum)
    return Parts(model_drafter(draft_model(task)), length, speculative_sampling)


ALGORITHM = Algorithm(
    name="dynamic-k",
    summary="speculative sampling; k is raised or lowered by the share of accepted drafts in the last round",
    build=build,
    claims=frozenset(Claim),
    examples=({"start": 1, "minimum": 0, "maximum": 3}, {"start": 2, "minimum": 1, "maximum": 3}),
    paper="edge-cloud guide, dynamic block length; exact because only past rounds decide",
    systems=("dynamic k",),
    reductions=(
        Reduction(
            "speculative-sampling", "the two bounds are equal", {"start": 2, "minimum": 2, "maximum": 2}, {"gamma": 2}
        ),
    ),
)
