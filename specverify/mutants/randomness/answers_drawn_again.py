"""The cloud does not remember its answers, and answers that came too late are drawn again: rejections are lost.

A rejection takes longer, because its row of q has to be fetched, so what is drawn again depends on what was drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from specverify.mutants.mutant import SHORT, planted
from specverify.reference import Decoder, Draws, Task, constant, flip
from specverify.reference.edge_cloud.decoder import edge_cloud_decoder
from specverify.reference.edge_cloud.link import Link, Service, in_memory
from specverify.reference.edge_cloud.messages import VerifiedReply, Verify
from specverify.reference.edge_cloud.wire import decode


def link(draws: Draws, service: Service) -> Link:
    """Lose half of the first answers that accept nothing, and the cloud's memory of them."""
    lost: list[str] = []

    def send(text: str) -> Sequence[str]:
        before, request = dict(service.sessions), decode(text)
        replies = in_memory(service)(text)
        reply = decode(replies[0])
        rejected = (
            isinstance(request, Verify) and request.draft and isinstance(reply, VerifiedReply) and not reply.accepted
        )
        if rejected and not lost and flip(draws, Fraction(1, 2), ("lost",)):
            lost.append(text)
            service.sessions = before
            return ()
        return replies

    return send


def build(task: Task, gamma: int = 4) -> Decoder:
    """Sparse-q over that link."""
    return edge_cloud_decoder(task, "sparse-q", constant(gamma), link=link)


MUTANT = planted(
    "edge-cloud-sparse-q",
    "answers-drawn-again",
    "draws a late answer anew",
    build,
    category="D",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
