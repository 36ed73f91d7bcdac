"""Write the test vectors as JSON files: one file per kind, one vector per line, with schemas.

The files are the same at every export.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from specverify.vectors.all_vectors import KINDS, all_vectors
from specverify.vectors.conventions import meaning_of
from specverify.vectors.notes import NOTES
from specverify.vectors.vector import FORMAT, FORMAT_VERSION, Kind, Vector, VectorResult

SCHEMAS = ("schema.json", "results.schema.json")
"""File names of the JSON schemas: of the vectors, and of the answers to them."""


def exported() -> dict[str, str]:
    """Return the files of test vectors that an export writes: file name -> text."""
    return {f"{kind.name}.json": kind_text(kind) for kind in KINDS} | {name: schema_text(name) for name in SCHEMAS}


def export(folder: Path) -> tuple[Path, ...]:
    """Write the files into ``folder``, which is created if needed; return their paths.

    Raises ``OSError`` if a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in exported().items():
        (folder / name).write_text(text, "utf-8")
        written.append(folder / name)
    return tuple(written)


def schema_text(name: str) -> str:
    """Return the text of the JSON schema with the file name ``name``, one of ``SCHEMAS``."""
    return files("specverify.vectors").joinpath(name).read_text("utf-8")


def kind_text(kind: Kind) -> str:
    """Return the text of the JSON file of a kind: its description, then one vector per line."""
    mine = [vector for vector in all_vectors().values() if vector.kind == kind.name]
    head = json.dumps(_head(kind, mine), indent=1, ensure_ascii=False).removesuffix("\n}")
    lines = ",\n".join("  " + json.dumps(vector_data(vector), ensure_ascii=False) for vector in mine)
    return f'{head},\n "vectors": [\n{lines}\n ]\n}}\n'


def vector_data(vector: Vector) -> dict[str, Any]:
    """Return a vector as a dictionary that ``json.dumps`` can write."""
    data: dict[str, Any] = {
        "id": vector.id,
        "kind": vector.kind,
        "result": vector.result.value,
        "flags": list(vector.flags),
        "notes": list(vector.notes),
        "inputs": dict(vector.inputs),
    }
    return data | _WRITTEN[vector.result](vector)


def _head(kind: Kind, mine: list[Vector]) -> Mapping[str, Any]:
    flags = dict.fromkeys(
        flag for vector in mine for flag in (*vector.flags, *(b.flag for b in vector.expected)) if flag
    )
    notes = dict.fromkeys(note for vector in mine for note in vector.notes)
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "kind": kind.name,
        "summary": kind.summary,
        "answer": dict(kind.fields),
        "flags": {flag: meaning_of(flag) for flag in flags},
        "notes": {note: NOTES[note]._asdict() for note in notes},
    }


_WRITTEN: dict[VectorResult, Callable[[Vector], dict[str, Any]]] = {
    VectorResult.VALID: lambda vector: {"expected": dict(vector.expected[0].answer)},
    VectorResult.ACCEPTABLE: lambda vector: {
        "acceptable": [{"flag": branch.flag, "answer": dict(branch.answer)} for branch in vector.expected]
    },
    VectorResult.INVALID: lambda vector: {"must_not": [dict(answer) for answer in vector.must_not]},
}
"""Required result of a vector -> the fields of its JSON object with right or forbidden answers."""
