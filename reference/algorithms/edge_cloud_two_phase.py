"""Edge and cloud in two phases: the accept coins need q(y_i) alone, so one row of q travels, and only on a rejection.

The second exchange costs a round trip with probability 1 - P(all accepted). The coins are drawn before the row is
requested, and the request gives the edge no information to act upon: its draft is fixed.
"""

from __future__ import annotations

from ..edge_cloud.decoder import edge_cloud_decoder
from ..lengths.constant import constant
from ..types import Algorithm, Claim, Decoder, Reduction, Task


def build(task: Task, gamma: int = 4) -> Decoder:
    """Draft gamma tokens from q on the edge, send their probabilities, supply the one row that is wanted."""
    return edge_cloud_decoder(task, "two-phase", constant(gamma))


ALGORITHM = Algorithm(
    name="edge-cloud-two-phase",
    summary="edge sends q(y_i) alone; at the first rejection the cloud asks for that row of q",
    build=build,
    claims=frozenset(Claim),
    examples=({"gamma": 1}, {"gamma": 2}),
    paper="arXiv 2211.17192, Algorithm 1, as a two-sided protocol in two phases",
    systems=("edge-cloud",),
    reductions=(Reduction("speculative-sampling", "always", {"gamma": 2}, {"gamma": 2}),),
)
