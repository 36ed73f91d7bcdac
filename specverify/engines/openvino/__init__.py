"""LLMPipeline of openvino-genai on tiny Llamas: with a draft model, and with prompt lookup."""

from __future__ import annotations

from collections.abc import Iterable

from specverify.engines import Engine, Table
from specverify.subjects.decoding import row_subject
from specverify.subjects.subject import Subject


def _load(name: str) -> Subject:
    from specverify.engines.openvino.rows import rows  # noqa: PLC0415 - needs openvino-genai

    row = name.partition("/")[2]
    return row_subject(row, f"openvino-genai, unmodified: {row}", rows()[row])


def _rows() -> Iterable[str]:
    from specverify.engines.openvino.rows import rows  # noqa: PLC0415 - needs openvino-genai

    return rows()


ENGINE = Engine(
    name="OpenVINO GenAI",
    prefix="openvino",
    requirement="openvino-genai",
    subjects={},
    load=_load,
    tables={"all": Table("every way in which it speculates, in every situation: openvino:all/NAME each", _rows)},
)
