"""Edge and cloud with only q(d) sent: after a rejection the cloud draws from p.

Not lossless. This is a shortcut of the edge-cloud guide; the law is that of ``resample_from_target``.
"""

from __future__ import annotations

from ..edge_cloud.decoder import edge_cloud_decoder
from ..lengths.constant import constant
from ..types import Algorithm, Claim, Decoder, Reduction, Task
from . import resample_from_target


def build(task: Task, gamma: int = 4) -> Decoder:
    """Return the decoder whose edge drafts ``gamma`` tokens d from q and sends them with q(d).

    The cloud accepts d with min(1, p(d)/q(d)), and after a rejection draws from p.
    """
    return edge_cloud_decoder(task, "shortcut", constant(gamma))


ALGORITHM = Algorithm(
    name="edge-cloud-shortcut",
    summary="the edge sends drafts and q(d); the cloud samples p after a rejection (declared bias)",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"gamma": 1}, {"gamma": 2}),
    paper="edge-cloud guide, Sections 3.1 and 3.2 (shortcut)",
    declared_law=resample_from_target.declared_law,
    systems=("edge-cloud",),
    reductions=(Reduction("resample-from-target", "always", {"gamma": 2}, {"gamma": 2}),),
)
