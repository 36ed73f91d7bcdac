"""Results of a run as JSON, in a published and versioned schema."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from specverify.report.data import finite, plain_verdict
from specverify.report.runs.said import RunSaid, SubjectSaid

FORMAT, FORMAT_VERSION = "specverify run", 2


def run_as_json(run: RunSaid) -> str:
    """Return the JSON text of a run; ``run_schema`` describes it."""
    data = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        **run._asdict(),
        "subjects": [_subject(subject) for subject in run.subjects],
        "matrix": None if run.matrix is None else _matrix(run),
    }
    return json.dumps(finite(data), indent=2) + "\n"


def run_schema() -> dict[str, Any]:
    """Return the JSON schema of a run."""
    text = files("specverify.report.runs").joinpath("run.schema.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def _subject(subject: SubjectSaid) -> dict[str, Any]:
    panels = [_panel(panel) for panel in subject.panels]
    return {"name": subject.name, "verdicts": [plain_verdict(item) for item in subject.verdicts], "panels": panels}


def _panel(panel: Any) -> dict[str, Any]:
    data: dict[str, Any] = panel._asdict()
    return data | {"rows": [row._asdict() for row in data["rows"]]} if "rows" in data else data


def _matrix(run: RunSaid) -> dict[str, Any]:
    assert run.matrix is not None
    return {"checks": run.matrix.checks, "rows": [row._asdict() for row in run.matrix.rows]}
