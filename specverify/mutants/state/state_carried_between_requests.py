"""What the last request left in its slot is neither rewound nor cleared when the next one begins."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.reference import Tokens


def carried(before: Tokens, rejected: int) -> Tokens:
    """Return the state of the request before."""
    return before


MUTANT = in_situation(
    "one after the other, recurrent",
    "state-carried-between-requests",
    "a request begins with another's state",
    category="I",
    citation="exllamav3 commit b2dd4ea",
    fresh_state=carried,
)
