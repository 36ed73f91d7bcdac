"""Edge and cloud with one seed: both read the same noise, and the edge sends only token ids (2408.07978).

Daliri, Musco and Suresh. The draft d and the cloud's draw y are the winners of races over the same exponential noise.
So they agree with probability ``sum_i 1/sum_v max(p_v/p_i, q_v/q_i)``, at least (1 - TV)/(1 + TV); independent draws
would agree with ``sum p q``. The text depends on the seed and the target alone, so a cloud that forgot its draw draws
the same token again.

Between processes the noise is ``shared_noise.SeededNoise``. For exact laws it is ``shared_noise.DrawnNoise``, which
draws only the winners of the races.
"""

from __future__ import annotations

from ..edge_cloud.decoder import edge_cloud_decoder
from ..lengths.constant import constant
from ..limits import greedy_draft
from ..types import Algorithm, Claim, Decoder, Reduction, Task


def build(task: Task, gamma: int = 4) -> Decoder:
    """Return the decoder whose edge drafts ``gamma`` tokens from q and sends only their ids.

    Edge and cloud draw by the same noise. The cloud accepts a draft if it equals its own draw from p.
    """
    return edge_cloud_decoder(task, "gumbel", constant(gamma))


ALGORITHM = Algorithm(
    name="edge-cloud-gumbel",
    summary="edge and cloud draw from q and p over the same noise; only drafts are sent, accepted while both agree",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"gamma": 1}, {"gamma": 2}),
    paper="arXiv 2408.07978, Section 4 (Gumbel sampling), as a two-sided protocol",
    systems=("edge-cloud",),
    reductions=(
        Reduction("gumbel-coupling", "always", {"gamma": 2}, {"gamma": 2}),
        Reduction("edge-cloud-match", "q one-hot", {"gamma": 2}, {"gamma": 2}, limit=greedy_draft),
    ),
)
