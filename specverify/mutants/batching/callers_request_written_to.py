"""The constructor brings a field into the shape it wants in the object that the caller passed in."""

from __future__ import annotations

from typing import Any

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.request import Request


def reshaping(body: dict[str, Any]) -> Request:
    """Return the request; its prompt becomes a batch of one in the caller's hands."""
    request = Request(**{**body, "prompt": tuple(body["prompt"])})
    body["stop_strings"] = [list(request.stop_strings)]
    return request


MUTANT = in_situation(
    "one request",
    "callers-request-written-to",
    "the caller's request is written to",
    category="L",
    citation="xLLM PR #1228 (f6052f64f)",
    killed_by="inputs_unchanged",
    admit=reshaping,
)
