"""Edge and cloud, the edge sends every row of q without its zeros: speculative sampling at a distance, unchanged.

A drafter that is cut to its top m tokens sends m probabilities a position. The rows that are sent must be the rows from
which the drafts were drawn.
"""

from __future__ import annotations

from ..edge_cloud.decoder import edge_cloud_decoder
from ..lengths.constant import constant
from ..types import Algorithm, Claim, Decoder, Reduction, Task


def build(task: Task, gamma: int = 4) -> Decoder:
    """Return the decoder that drafts ``gamma`` tokens from q on the edge and sends their rows; the cloud verifies."""
    return edge_cloud_decoder(task, "sparse-q", constant(gamma))


ALGORITHM = Algorithm(
    name="edge-cloud-sparse-q",
    summary="the edge sends drafts and the whole support of q; the cloud verifies by speculative sampling",
    build=build,
    claims=frozenset(Claim),
    examples=({"gamma": 1}, {"gamma": 2}),
    paper="arXiv 2211.17192, Algorithm 1, as a two-sided protocol; edge-cloud guide, Section 5",
    systems=("edge-cloud",),
    reductions=(Reduction("speculative-sampling", "always", {"gamma": 2}, {"gamma": 2}),),
)
