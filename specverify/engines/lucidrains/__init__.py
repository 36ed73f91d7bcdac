"""``speculative_decoding`` of lucidrains: its own networks, tiny; one row at a time, and batches."""

from __future__ import annotations

from collections.abc import Iterable

from specverify.engines import Engine, Table
from specverify.subjects.decoding import row_subject
from specverify.subjects.subject import Subject


def _load(name: str) -> Subject:
    from specverify.engines.lucidrains.rows import rows  # noqa: PLC0415 - needs speculative-decoding

    row = name.partition("/")[2]
    return row_subject(row, f"speculative-decoding of lucidrains, unmodified: {row}", rows()[row])


def _rows() -> Iterable[str]:
    from specverify.engines.lucidrains.rows import rows  # noqa: PLC0415 - needs speculative-decoding

    return rows()


ENGINE = Engine(
    name="speculative-decoding (lucidrains)",
    prefix="lucidrains",
    requirement="speculative-decoding",
    subjects={},
    load=_load,
    tables={"all": Table("every way in which it speculates, in every situation: lucidrains:all/NAME each", _rows)},
)
