"""Algorithms, engines, checks and planted bugs as data, for ``specverify list``.

To be fast, each function imports only what it lists: for example, a list of checks imports no planted bug, and counting
imports neither checks nor planted bugs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Rows = list[dict[str, Any]]
_HERE = Path(__file__).parents[1]


def rows_of(kind: str) -> Rows:
    """Return the items of ``kind``, one of ``KINDS``, as JSON mappings with at least a name and a summary."""
    return KINDS[kind]()


def everything() -> dict[str, Rows]:
    """Return the items of every list: kind ("algorithms", "subjects", "checks" or "mutants") -> items of this kind."""
    return {kind: rows_of(kind) for kind in KINDS}


def numbers() -> dict[str, int]:
    """Return kind -> number of its items.

    Algorithms, checks and planted bugs are counted in their source files, without importing them.
    """
    return {
        "algorithms": _files_with("ALGORITHM", (_HERE.parent / "reference" / "algorithms").glob("*.py")),
        "subjects": len(_subjects()),
        "checks": _files_with("CHECK", (_HERE / "checks").glob("*.py")),
        "mutants": sum(map(_decorated, (_HERE / "mutants").glob("*.py"))),
    }


PLANTED = re.compile(r"^(?:@|\w+ = )(?:planted|in_situation|in_drafting|engine_part|drafting_part)\w*\(", re.MULTILINE)


def _decorated(file: Path) -> int:
    return len(PLANTED.findall(file.read_text(encoding="utf-8")))


def _files_with(name: str, files: Iterable[Path]) -> int:
    return sum(f"\n{name} = " in file.read_text(encoding="utf-8") for file in files)


def _algorithms() -> Rows:
    from specverify.reference import ALGORITHMS  # noqa: PLC0415 - see above
    from specverify.report.systems import evidence  # noqa: PLC0415 - as above

    return [
        {
            "name": f"reference:{row.name}",
            "claims": sorted(claim.value for claim in row.claims),
            "declared_bias": row.declared_law is not None,
            "evidence": evidence(row),
            "systems": list(row.systems),
            "summary": row.summary,
            "needs_training": row.needs_training,
            "reductions": [f"{item.to}: {item.when}" for item in row.reductions],
            "paper": row.paper,
        }
        for row in ALGORITHMS
    ]


def _subjects() -> Rows:
    """Return name and summary of every subject of the engines, and of every table (a named group of subjects).

    An engine that cannot be loaded has one row, with the reason as its summary.
    """
    from specverify.engines import engine_subjects, found_engines, tables  # noqa: PLC0415 - see above

    unusable = {f"{prefix}:": why for prefix, why in found_engines().unusable.items()}
    result = engine_subjects() | tables() | unusable
    return [{"name": name, "summary": summary} for name, summary in result.items()]


def _checks() -> Rows:
    from specverify.checks import CHECKS  # noqa: PLC0415 - see above

    return [{"name": check.name, "evidence": check.evidence.value, "summary": check.summary} for check in CHECKS]


def _mutants() -> Rows:
    from specverify.mutants import mutants  # noqa: PLC0415 - see above

    return [
        {
            "name": f"mutant:{mutant.name}",
            "summary": mutant.summary,
            "killed_by": mutant.killed_by,
            "citation": mutant.citation,
        }
        for mutant in mutants()
    ]


KINDS: dict[str, Callable[[], Rows]] = {
    "algorithms": _algorithms,
    "subjects": _subjects,
    "checks": _checks,
    "mutants": _mutants,
}


def line_of(row: dict[str, Any]) -> str:
    """Return the text about ``row``, an item of the list: its summary, and its other fields in brackets."""
    notes = [f"killed by {row['killed_by']}" if "killed_by" in row else ""]
    notes += [f"claims {', '.join(row['claims'])}" if row.get("claims") else ""]
    notes += [row.get(field, "") for field in ("evidence", "paper", "citation")]
    notes += [", ".join(row.get("systems", ()))]
    said = "; ".join(note for note in notes if note)
    return f"{row['summary']}  [{said}]" if said else str(row["summary"])
