"""Verdicts as JSON, in a published schema."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from specverify import __version__
from specverify.base.verdict import Verdict


def as_data(verdicts: Sequence[Verdict], alarm: float, seed: int) -> dict[str, Any]:
    """Return a report as JSON-able data; ``schema`` describes it."""
    return {
        "specverify": __version__,
        "alarm": alarm,
        "seed": seed,
        "verdicts": [_plain(verdict) for verdict in verdicts],
    }


def schema() -> dict[str, Any]:
    """Return the JSON schema of a report."""
    loaded: dict[str, Any] = json.loads(files("specverify.report").joinpath("schema.json").read_text("utf-8"))
    return loaded


def _plain(verdict: Verdict) -> dict[str, Any]:
    data = verdict._asdict()
    example = verdict.counterexample
    data["counterexample"] = None if example is None else example._asdict()
    data["figures"] = finite(dict(verdict.figures))
    return data


def finite(value: Any) -> Any:
    """JSON knows no infinity: a statistic that is infinite becomes the word."""
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
