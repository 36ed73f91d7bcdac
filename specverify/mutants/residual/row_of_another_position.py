"""The cloud asks for the row of q at the rejection and is sent the block's first one."""

from __future__ import annotations

from collections.abc import Sequence

from specverify.mutants.mutant import SHORT, planted
from specverify.reference import Decoder, Draws, Task, constant
from specverify.reference.edge_cloud.decoder import edge_cloud_decoder
from specverify.reference.edge_cloud.link import Link, Service, in_memory
from specverify.reference.edge_cloud.messages import Supply
from specverify.reference.edge_cloud.modes import as_row
from specverify.reference.edge_cloud.wire import decode, encode
from specverify.reference.models import draft_model


def build(task: Task, gamma: int = 4) -> Decoder:
    """Two phases; the row that is supplied is always that of position 0."""
    q = draft_model(task)

    def link(draws: Draws, service: Service) -> Link:
        def send(text: str) -> Sequence[str]:
            request = decode(text)
            if isinstance(request, Supply):
                held = service.sessions[request.session]
                row, token = as_row(q(held.tokens)), request.draft[request.position]
                if held.pending and token in row.tokens:
                    pending = held.pending._replace(mass=row.masses[row.tokens.index(token)])
                    service.sessions[request.session] = held._replace(pending=pending)
                    text = encode(request._replace(row=row))
            return in_memory(service)(text)

        return send

    return edge_cloud_decoder(task, "two-phase", constant(gamma), link=link)


MUTANT = planted(
    "edge-cloud-two-phase",
    "row-of-another-position",
    "supplies row 0 whatever is wanted",
    build,
    category="C",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
