"""Llama.generate of llama-cpp-python on a tiny Llama: its own drafter, and drafts that are scripted."""

from __future__ import annotations

from collections.abc import Iterable

from specverify.engines import Engine, Table
from specverify.subjects.decoding import row_subject
from specverify.subjects.subject import Subject


def _load(name: str) -> Subject:
    from specverify.engines.llama.rows import rows  # noqa: PLC0415 - needs llama-cpp-python

    row = name.partition("/")[2]
    return row_subject(row, f"llama-cpp-python, unmodified: {row}", rows()[row])


def _rows() -> Iterable[str]:
    from specverify.engines.llama.rows import rows  # noqa: PLC0415 - needs llama-cpp-python

    return rows()


ENGINE = Engine(
    name="llama.cpp",
    prefix="llama",
    requirement="llama-cpp-python",
    subjects={},
    load=_load,
    tables={"all": Table("every way in which it speculates, in every situation: llama:all/NAME each", _rows)},
)
