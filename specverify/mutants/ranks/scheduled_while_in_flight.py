"""The field that keeps a request's steps apart is never set, so its next pass begins before the last is committed."""

from __future__ import annotations

from collections.abc import Sequence

from specverify.mutants.serving.planted import in_situation


def twice(ready: Sequence[int], step: int, rotates: bool) -> tuple[int, ...]:
    """Return every request twice in one step."""
    return (*ready, *ready)


MUTANT = in_situation(
    "one request",
    "scheduled-while-in-flight",
    "a request is scheduled while in flight",
    category="P",
    citation="vLLM issue #52071",
    schedule=twice,
)
