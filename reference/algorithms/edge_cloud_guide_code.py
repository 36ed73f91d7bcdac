"""Edge and cloud as the guide's code has it: accept iff p(y)/q(y) >= 1, else sample p. Declared bias.

The law is that of ``accept_if_likelier``. The code emits no bonus token when all drafts pass; here one is emitted,
which the law of a drafted token does not depend on.
"""

from __future__ import annotations

from ..edge_cloud.decoder import edge_cloud_decoder
from ..lengths.constant import constant
from ..types import Algorithm, Claim, Decoder, Reduction, Task
from . import accept_if_likelier


def build(task: Task, gamma: int = 4) -> Decoder:
    """Return the decoder that drafts gamma tokens from q on the edge and sends their probabilities."""
    return edge_cloud_decoder(task, "likelier", constant(gamma))


ALGORITHM = Algorithm(
    name="edge-cloud-guide-code",
    summary="edge sends q(y_i) alone, cloud accepts iff p >= q, else samples p (declared bias)",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"gamma": 1}, {"gamma": 2}),
    paper="edge-cloud guide, Section 6.2 (its code, with the bonus token it leaves out)",
    declared_law=accept_if_likelier.declared_law,
    systems=("edge-cloud",),
    reductions=(Reduction("accept-if-likelier", "always", {"gamma": 2}, {"gamma": 2}),),
)
