"""Edge and cloud with only q(d) sent: the "strictly unbiased" residual of the edge-cloud guide, clamped at 0.

Not lossless. The law is that of ``clamped_scalar_residual``; the distance between edge and cloud does not change it.
"""

from __future__ import annotations

from ..edge_cloud.decoder import edge_cloud_decoder
from ..lengths.constant import constant
from ..types import Algorithm, Claim, Decoder, Reduction, Task
from . import clamped_scalar_residual


def build(task: Task, gamma: int = 4) -> Decoder:
    """Return the decoder whose edge drafts ``gamma`` tokens d from q and sends them with q(d).

    The cloud accepts d with min(1, p(d)/q(d)), and after a rejection draws from p without d.
    """
    return edge_cloud_decoder(task, "scalar-q", constant(gamma))


ALGORITHM = Algorithm(
    name="edge-cloud-scalar-q",
    summary="the edge sends drafts and q(d); the cloud replaces from p with only q(d) subtracted (declared bias)",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"gamma": 1}, {"gamma": 2}),
    paper="edge-cloud guide, Sections 3.1, 5.1 and 12",
    declared_law=clamped_scalar_residual.declared_law,
    systems=("edge-cloud",),
    reductions=(Reduction("clamped-scalar-residual", "always", {"gamma": 2}, {"gamma": 2}),),
)
