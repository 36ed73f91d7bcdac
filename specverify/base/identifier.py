"""Replay identifiers: one word with everything needed to reproduce a failure."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from typing import NamedTuple

from specverify.base.arguments import check_seed, shown
from specverify.base.default_limits import EDGE
from specverify.base.edges import check_edge

LONGEST = 1_000_000
"""Largest number of characters of a decompressed identifier."""


class Replay(NamedTuple):
    """The content of a replay identifier: the names that select one case of one check on one subject, and the seed.

    ``variant`` names the options of the subject, ``scenario`` the models with the prompt, and ``setting`` the options
    of a check that samples. Each of these three may be "".
    """

    subject: str
    check: str
    variant: str = ""
    scenario: str = ""
    setting: str = ""
    seed: int = 0
    edge: float = EDGE
    """Smallest probability per draft at which an edge refutes."""


def pack_replay(replay: Replay) -> str:
    """Return the replay identifier of a case: URL-safe text that ``unpack_replay`` decodes."""
    told = replay if replay.edge != EDGE else replay[:-1]
    return base64.urlsafe_b64encode(zlib.compress(json.dumps(told).encode(), 9)).decode().rstrip("=")


def unpack_replay(identifier: str) -> Replay:
    """Return the case that a replay identifier describes; raises ``ValueError`` if the text is no identifier."""
    try:
        padded = identifier + "=" * (-len(identifier) % 4)
        unpacked = zlib.decompressobj()
        text = unpacked.decompress(base64.urlsafe_b64decode(padded.encode("ascii")), LONGEST)
        result = json.loads(text) if unpacked.eof else None
        if isinstance(result, list) and len(result) == len(Replay._fields) - 1:
            result = [*result, EDGE]
        if isinstance(result, list) and len(result) == len(Replay._fields):
            *words, seed, edge = result
            check_seed(seed)
            check_edge(edge)
            if all(isinstance(word, str) for word in words):
                return Replay._make(result)
    except (binascii.Error, zlib.error, ValueError, RecursionError):
        pass
    raise ValueError(
        f"{shown(identifier)} is not a replay identifier: expected the word a report printed after 'specverify replay'"
    )
