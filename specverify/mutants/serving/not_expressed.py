"""Recorded defects of serving engines that have no planted bug, and why."""

from __future__ import annotations

NOT_EXPRESSED: dict[str, str] = {
    "vLLM issue #9423": (
        "guided decoding broken by speculation: the report shows no cause, and every cause we could plant is planted "
        "under another citation"
    ),
}
