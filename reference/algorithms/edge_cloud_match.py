"""Edge and cloud, where the edge sends only token ids: sample-and-match, lossless for every drafter.

A draft is accepted with probability ``sum p q``. If the edge also sends the numbers q(y_i) of its drafts y_i, no
lossless verifier accepts more, for three or more tokens (see ``clamped_scalar_residual``).
"""

from __future__ import annotations

from ..edge_cloud.decoder import edge_cloud_decoder
from ..lengths.constant import constant
from ..types import Algorithm, Claim, Decoder, Reduction, Task


def build(task: Task, gamma: int = 4) -> Decoder:
    """Return the decoder whose edge drafts ``gamma`` tokens from q and sends only their ids.

    The cloud accepts a draft if it equals its own draw from p.
    """
    return edge_cloud_decoder(task, "match", constant(gamma))


ALGORITHM = Algorithm(
    name="edge-cloud-match",
    summary="the edge sends only drafts; the cloud draws from p and continues while they match",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"gamma": 1}, {"gamma": 2}),
    paper="sample-and-match as a two-sided protocol",
    systems=("edge-cloud",),
    reductions=(Reduction("sample-and-match", "always", {"gamma": 2}, {"gamma": 2}),),
)
