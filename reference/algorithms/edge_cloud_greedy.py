"""Edge and cloud at temperature 0: the edge sends only token ids, and the output is the target's greedy text."""

from __future__ import annotations

from ..edge_cloud.decoder import edge_cloud_decoder
from ..laws import greedy_law
from ..lengths.constant import constant
from ..types import Algorithm, Claim, Decoder, Reduction, Task


def build(task: Task, gamma: int = 4) -> Decoder:
    """Return the decoder whose edge drafts ``gamma`` tokens from q.

    The cloud keeps the drafts that are the target's argmax, up to the first that is not.
    """
    return edge_cloud_decoder(task, "greedy", constant(gamma))


ALGORITHM = Algorithm(
    name="edge-cloud-greedy",
    summary="the edge sends only drafts; the cloud accepts them while they are its argmax",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"gamma": 1}, {"gamma": 2}),
    paper="arXiv 2211.17192, Section 2.2 (temperature 0), as a two-sided protocol",
    declared_law=greedy_law,
    systems=("edge-cloud",),
    reductions=(Reduction("greedy-speculation", "always", {"gamma": 2}, {"gamma": 2}),),
)
