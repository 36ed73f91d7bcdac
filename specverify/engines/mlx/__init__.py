"""generate_step and speculative_generate_step of mlx-lm on the CPU, on tiny Llamas."""

from __future__ import annotations

from collections.abc import Iterable

from specverify.engines import Engine, Table
from specverify.subjects.decoding import row_subject
from specverify.subjects.subject import Subject


def _load(name: str) -> Subject:
    from specverify.engines.mlx.rows import rows  # noqa: PLC0415 - needs mlx-lm

    row = name.partition("/")[2]
    return row_subject(row, f"mlx-lm, unmodified: {row}", rows()[row])


def _rows() -> Iterable[str]:
    from specverify.engines.mlx.rows import rows  # noqa: PLC0415 - needs mlx-lm

    return rows()


ENGINE = Engine(
    name="MLX",
    prefix="mlx",
    requirement="mlx-lm",
    subjects={},
    load=_load,
    tables={"all": Table("every way in which it speculates, in every situation: mlx:all/NAME each", _rows)},
)
