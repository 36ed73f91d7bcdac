"""Edge and cloud in two phases: acceptance needs only q(d), so a row of q is sent only after a rejection.

The second exchange costs a round trip with probability 1 - P(all accepted). Acceptance is decided before the row is
requested. The request cannot change the result, because the edge's drafts are fixed.
"""

from __future__ import annotations

from ..edge_cloud.decoder import edge_cloud_decoder
from ..lengths.constant import constant
from ..types import Algorithm, Claim, Decoder, Reduction, Task


def build(task: Task, gamma: int = 4) -> Decoder:
    """Return the decoder whose edge drafts ``gamma`` tokens d from q and sends q(d).

    The cloud accepts d with min(1, p(d)/q(d)), and after a rejection requests the row of q.
    """
    return edge_cloud_decoder(task, "two-phase", constant(gamma))


ALGORITHM = Algorithm(
    name="edge-cloud-two-phase",
    summary="the edge sends drafts and q(d); after a rejection the cloud requests the row of q",
    build=build,
    claims=frozenset(Claim),
    examples=({"gamma": 1}, {"gamma": 2}),
    paper="arXiv 2211.17192, Algorithm 1, as a two-sided protocol in two phases",
    systems=("edge-cloud",),
    reductions=(Reduction("speculative-sampling", "always", {"gamma": 2}, {"gamma": 2}),),
)
