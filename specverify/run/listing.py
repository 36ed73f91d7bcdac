"""What there is: algorithms, engines, checks and mutants as data, for ``specverify list``."""

from __future__ import annotations

from typing import Any

from reference import ALGORITHMS
from specverify.checks import CHECKS
from specverify.engines import found_engines
from specverify.mutants import mutants
from specverify.report.systems import evidence
from specverify.run.catalogue import engine_subjects, tables


def everything() -> dict[str, list[dict[str, Any]]]:
    """Return title -> rows, JSON-able; each row has at least a name and a summary."""
    return {
        "algorithms": [
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
        ],
        "subjects": [{"name": name, "summary": summary} for name, summary in _subjects().items()],
        "checks": [
            {"name": check.name, "evidence": check.evidence.value, "summary": check.summary} for check in CHECKS
        ],
        "mutants": [
            {
                "name": f"mutant:{mutant.name}",
                "summary": mutant.summary,
                "killed_by": mutant.killed_by,
                "citation": mutant.citation,
            }
            for mutant in mutants()
        ],
    }


def _subjects() -> dict[str, str]:
    """Return the subjects of engines, their tables, and of engines that cannot be used why not."""
    unusable = {f"{prefix}:": why for prefix, why in found_engines().unusable.items()}
    return engine_subjects() | tables() | unusable


def line_of(row: dict[str, Any]) -> str:
    """Return the line of a row: its summary and what is known of it."""
    notes = [f"killed by {row['killed_by']}" if "killed_by" in row else ""]
    notes += [f"claims {', '.join(row['claims'])}" if row.get("claims") else ""]
    notes += [row.get(field, "") for field in ("evidence", "paper", "citation")]
    notes += [", ".join(row.get("systems", ()))]
    said = "; ".join(note for note in notes if note)
    return f"{row['summary']}  [{said}]" if said else str(row["summary"])
