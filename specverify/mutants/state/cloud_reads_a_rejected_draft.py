"""The last entry of the cloud's cropped cache is that of a rejected draft: the next round reads it."""

from __future__ import annotations

from collections.abc import Sequence

from specverify.mutants.mutant import SHORT, planted
from specverify.reference import Decoder, Draws, Task, constant
from specverify.reference.edge_cloud.decoder import edge_cloud_decoder
from specverify.reference.edge_cloud.link import Link, Service, in_memory
from specverify.reference.edge_cloud.messages import Verify
from specverify.reference.edge_cloud.wire import decode


def link(draws: Draws, service: Service) -> Link:
    """After each round, leave the first rejected draft in the last slot of the cache."""

    def send(text: str) -> Sequence[str]:
        request = decode(text)
        replies = in_memory(service)(text)
        held = service.sessions[request.session]
        if isinstance(request, Verify):
            kept = len(held.cache) - request.known
            if held.cache and 0 <= kept < len(request.draft):
                held = held._replace(cache=(*held.cache[:-1], request.draft[kept]))
                service.sessions[request.session] = held
        return replies

    return send


def build(task: Task, gamma: int = 4) -> Decoder:
    """Sparse-q with that cloud."""
    return edge_cloud_decoder(task, "sparse-q", constant(gamma), link=link)


MUTANT = planted(
    "edge-cloud-sparse-q",
    "cloud-reads-a-rejected-draft",
    "leaves a rejected draft in the cloud's cache",
    build,
    category="H",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
