"""The stop words of all requests in the batch are put in one list and compared with every row."""

from __future__ import annotations

from collections.abc import Sequence

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.request import Request


def of_all(request: Request, batch: Sequence[Request]) -> tuple[str, ...]:
    """Return the stop strings of the whole batch."""
    return tuple(string for other in batch for string in other.stop_strings)


MUTANT = in_situation(
    "different stop strings",
    "stop-words-of-all-rows",
    "a request stops on another's stop word",
    category="K",
    citation="LMDeploy PR #4671 (80e2de538)",
    stop_strings_of=of_all,
)
