"""``Generator`` of onnxruntime-genai on tiny Llamas: with a draft model, and with drafts copied from the text."""

from __future__ import annotations

from collections.abc import Iterable

from specverify.engines import Engine, Table
from specverify.subjects.decoding import row_subject
from specverify.subjects.subject import Subject


def _load(name: str) -> Subject:
    from specverify.engines.onnxruntime.rows import rows  # noqa: PLC0415 - needs onnxruntime-genai

    row = name.partition("/")[2]
    return row_subject(row, f"Generator of onnxruntime-genai, unmodified: {row}", rows()[row])


def _rows() -> Iterable[str]:
    from specverify.engines.onnxruntime.rows import rows  # noqa: PLC0415 - needs onnxruntime-genai

    return rows()


ENGINE = Engine(
    name="onnxruntime-genai",
    prefix="onnxruntime",
    requirement="onnxruntime-genai",
    subjects={},
    load=_load,
    tables={"all": Table("every way in which it speculates, in every situation: onnxruntime:all/NAME each", _rows)},
)
