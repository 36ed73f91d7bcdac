"""The type of a row in the table of shipped verifiers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

LAW, BOUNDARY, STOPS, REUSE = "law_is_target", "support_at_boundary_draws", "stop_law", "draws_are_independent"
SECONDS = 240


class Shipped(NamedTuple):
    """Code of another project, the way in which it is examined, and its known faults."""

    what: str
    make: Callable[[], Any]
    adapter: Callable[..., Any]
    """The lines that call it."""
    options: dict[str, Any] = {}  # noqa: RUF012 - never changed
    expected: frozenset[str] = frozenset()
    """What is refuted."""
    engine: bool = False
    unanswered: bool = False
    """Whether some check has no verdict: random numbers are used in a way that has no answer, or it takes too long."""
    seconds: float = SECONDS
    """What it may take; what is not reached then is unknown."""
