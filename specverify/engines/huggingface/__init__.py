"""``generate`` of Hugging Face transformers, unmodified, on tiny models, with every kind of speculation that it has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from specverify.engines import Engine, Reproducer, Table

if TYPE_CHECKING:
    from specverify.intercept.torch.passes import Passes
    from specverify.subjects.fault import Fault
    from specverify.subjects.observer import ReadPass
    from specverify.subjects.subject import EngineProgram, Subject


def _load(name: str) -> Subject:
    from specverify.engines.huggingface.rows import row_subject, rows  # noqa: PLC0415 - needs transformers
    from specverify.engines.huggingface.rows_alone import alone_subject, rows_alone  # noqa: PLC0415 - as above
    from specverify.engines.huggingface.subjects import SUBJECTS  # noqa: PLC0415 - as above

    table, in_table, row = name.partition("/")
    if table == "alone":
        return alone_subject(row, rows_alone()[row])
    return row_subject(row, rows()[row]) if in_table else SUBJECTS[name]()


def _rows() -> Iterable[str]:
    from specverify.engines.huggingface.rows import rows  # noqa: PLC0415 - needs transformers

    return rows()


def _rows_alone() -> Iterable[str]:
    from specverify.engines.huggingface.rows_alone import rows_alone  # noqa: PLC0415 - needs transformers

    return rows_alone()


def _script(source: Any, fault: Fault) -> str:
    from specverify.engines.huggingface.script import script_of  # noqa: PLC0415 - needs transformers

    return script_of(source.generation, fault, source.setting.name)


def _smaller(source: Any) -> Iterable[tuple[str, EngineProgram]]:
    from specverify.engines.huggingface.smaller import smaller_programs  # noqa: PLC0415 - needs transformers

    return smaller_programs(source)


def _clearer(source: Any) -> Iterable[tuple[str, EngineProgram]]:
    from specverify.engines.huggingface.smaller import clearer_programs  # noqa: PLC0415 - needs transformers

    return clearer_programs(source)


def _is_model(model: Any) -> bool:
    return any(kind.__module__.partition(".")[0] == "transformers" for kind in type(model).__mro__)


def _reads(model: Any) -> ReadPass | None:
    if not _is_model(model):
        return None
    from specverify.engines.huggingface.watch import pass_of  # noqa: PLC0415 - whoever has a model has the library

    return pass_of(model)


def _passes(model: Any) -> Passes | None:
    if not _is_model(model):
        return None
    from specverify.engines.huggingface.generation import PASSES  # noqa: PLC0415 - whoever has a model has the library

    return PASSES


ENGINE = Engine(
    name="transformers",
    prefix="hf",
    requirement="specverify-suite[hf]",
    subjects={
        "assisted": "transformers generate(assistant_model=...), unmodified, on tiny Llama and GPT-2 models",
        "prompt-lookup": "transformers generate(prompt_lookup_num_tokens=...), unmodified, on the same models",
        "plain": "transformers generate() without speculation, on the same models",
    },
    load=_load,
    tables={
        "all": Table("every way in which generate() speculates, in every situation: hf:all/NAME each", _rows),
        "alone": Table(
            "generate() without speculation, under every option of its law: hf:alone/NAME each", _rows_alone
        ),
    },
    reproducer=Reproducer(_script, _smaller, _clearer),
    reads=_reads,
    passes=_passes,
)
