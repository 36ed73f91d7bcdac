"""Edge and cloud as in the code of the edge-cloud guide: accept d iff p(d)/q(d) >= 1, else draw from p.

Not lossless. The law is that of ``accept_if_likelier``. The guide's code emits no bonus token if all drafts are
accepted; here one is emitted, which does not change the law of a drafted token.
"""

from __future__ import annotations

from ..edge_cloud.decoder import edge_cloud_decoder
from ..lengths.constant import constant
from ..types import Algorithm, Claim, Decoder, Reduction, Task
from . import accept_if_likelier


def build(task: Task, gamma: int = 4) -> Decoder:
    """Return the decoder whose edge drafts ``gamma`` tokens d from q and sends them with q(d).

    The cloud accepts d iff p(d) >= q(d), and draws from p after a rejection.
    """
    return edge_cloud_decoder(task, "likelier", constant(gamma))


ALGORITHM = Algorithm(
    name="edge-cloud-guide-code",
    summary="the edge sends drafts and q(d); the cloud accepts if p >= q, else samples p (declared bias)",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"gamma": 1}, {"gamma": 2}),
    paper="edge-cloud guide, Section 6.2 (its code, with the bonus token it leaves out)",
    declared_law=accept_if_likelier.declared_law,
    systems=("edge-cloud",),
    reductions=(Reduction("accept-if-likelier", "always", {"gamma": 2}, {"gamma": 2}),),
)
