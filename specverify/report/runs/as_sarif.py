"""Results of a run as SARIF 2.1.0, for code hosts: one result for every verdict other than HOLDS.

The subject of a verdict need not be a file; its name is a logical location. Code hosts list a result only with a file,
so the physical location is the report file of the run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from specverify.base.verdict import AT_AN_EDGE, Status, Verdict, word_of
from specverify.report.prose import in_full
from specverify.report.runs.said import RunSaid

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS: Final[Mapping[str, str]] = {
    Status.REFUTED: "error",
    AT_AN_EDGE: "warning",
    Status.UNUSABLE: "error",
    Status.UNKNOWN: "warning",
    Status.DECLARED_BIAS: "note",
    Status.REFUSED: "note",
}
"""Status word of a verdict -> its SARIF level; a verdict that holds with an edge is a note."""


def level_of(verdict: Verdict) -> str | None:
    """Return the SARIF level of a verdict, such as "error"; None if the verdict is not listed in the SARIF file.

    Not listed are checks that do not apply, and checks that hold without a note on edges (faults at random numbers very
    close to 0 or 1).
    """
    return LEVELS.get(word_of(verdict)) or ("note" if verdict.figures.get("edges") else None)


def run_as_sarif(run: RunSaid, file: str) -> str:
    """Return the SARIF text of a run; ``file`` is the JSON file of the run, which the text names as location."""
    told = [verdict for verdict in run.verdicts if level_of(verdict)]
    checks = list(dict.fromkeys(verdict.check for verdict in told))
    driver = {
        "name": "specverify",
        "version": run.versions.get("specverify", "unknown"),
        "rules": [
            {"id": check, "shortDescription": {"text": check.replace("_", " ").capitalize() + "."}} for check in checks
        ],
    }
    result = {
        "tool": {"driver": driver},
        "invocations": [_invocation(run)],
        "results": [_result(verdict, run, checks, file) for verdict in told],
        "columnKind": "unicodeCodePoints",
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [result]}, indent=2) + "\n"


def _invocation(run: RunSaid) -> dict[str, Any]:
    notes = [{"level": "warning", "message": {"text": sentence}} for sentence in run.unfinished]
    told = {"toolExecutionNotifications": notes} if notes else {}
    line = {"commandLine": run.command} if run.command else {}
    return {"executionSuccessful": not run.unfinished, **line, **told}


def _result(verdict: Verdict, run: RunSaid, checks: list[str], file: str) -> dict[str, Any]:
    same = sha256(json.dumps([verdict.subject, verdict.check]).encode()).hexdigest()
    place = {"artifactLocation": {"uri": quote(PurePath(file).as_posix())}, "region": {"startLine": 1}}
    return {
        "ruleId": verdict.check,
        "ruleIndex": checks.index(verdict.check),
        "level": level_of(verdict),
        "message": {"text": f"{verdict.subject}: {in_full(verdict)}"},
        "locations": [{"physicalLocation": place, "logicalLocations": [{"fullyQualifiedName": verdict.subject}]}],
        "partialFingerprints": {"subjectAndCheck/v1": same},
    }
