"""Read a run from its JSON file; its keys determine the kind of run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from specverify.report.runs.of_mutants import said_of_mutants
from specverify.report.runs.of_statistics import said_of_statistics
from specverify.report.runs.of_verdicts import said_of_verdicts
from specverify.report.runs.said import RunSaid

KINDS: Final[Mapping[str, Callable[[Mapping[str, Any]], RunSaid]]] = {
    "verdicts": said_of_verdicts,
    "rows": said_of_statistics,
    "mutants": said_of_mutants,
}
"""Key that only one kind of run has -> the function that reads it."""
EXPECTED: Final = (
    "expected what verify, sample, campaign, stats or mutants wrote with --json, or the results of a campaign"
)


def said_of(text: str, name: str) -> RunSaid:
    """Return the run in the JSON ``text``; ``name`` is its file in errors.

    Raises ``ValueError`` with one sentence for any other text.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} is no JSON ({error}), {EXPECTED}") from None
    kinds = [kind for kind in KINDS if isinstance(data, dict) and kind in data]
    if len(kinds) != 1:
        raise ValueError(f"{name} is JSON that no run wrote, {EXPECTED}")
    try:
        return KINDS[kinds[0]](data)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        said = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{name} has {kinds[0]} that no run wrote ({said}), {EXPECTED}") from None
