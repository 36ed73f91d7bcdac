"""Replay identifiers: everything needed to see a failure again, in one word that can be mailed."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from typing import NamedTuple


class Replay(NamedTuple):
    """One case of one check: the subject, what was asked, in which variant and scenario or sampled setting."""

    subject: str
    check: str
    variant: str = ""
    scenario: str = ""
    setting: str = ""
    seed: int = 0


def encode(replay: Replay) -> str:
    """Return the identifier of a case."""
    return base64.urlsafe_b64encode(zlib.compress(json.dumps(replay).encode(), 9)).decode().rstrip("=")


def decode(identifier: str) -> Replay:
    """Return the case of an identifier. Raises ``ValueError`` in one sentence if it is none."""
    try:
        padded = identifier + "=" * (-len(identifier) % 4)
        return Replay(*json.loads(zlib.decompress(base64.urlsafe_b64decode(padded.encode("ascii")))))
    except (binascii.Error, zlib.error, ValueError, TypeError, UnicodeError):
        raise ValueError(
            f"{identifier!r} is not a replay identifier: expected the word a report printed after 'specverify replay'"
        ) from None
