"""From a name on the command line to a subject, and what there is to name."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from reference import ALGORITHMS
from specverify.mutants import mutants
from specverify.subjects.algorithm import algorithm_subject
from specverify.subjects.external import external_subject
from specverify.subjects.subject import Subject, UnusableSubject

TABLES: dict[str, str] = {"hf:all": "every way in which generate() speculates, in every situation: hf:all/NAME each"}
"""Names that stand for many subjects."""


def _huggingface(name: str) -> Subject:
    from specverify.subjects.huggingface_subjects import SUBJECTS  # noqa: PLC0415 - needs the extra hf

    return SUBJECTS[name]()


def _huggingface_rows() -> dict[str, Callable[[], Subject]]:
    from specverify.subjects.huggingface_rows import row_subject, rows  # noqa: PLC0415 - needs the extra hf

    return {f"hf:all/{name}": (lambda name=name, row=row: row_subject(name, row)) for name, row in rows().items()}  # type: ignore[misc]


ENGINES: dict[str, str] = {
    "hf:assisted": "transformers generate(assistant_model=...), unmodified, on tiny Llama and GPT-2 models",
    "hf:prompt-lookup": "transformers generate(prompt_lookup_num_tokens=...), unmodified, on the same models",
    "hf:plain": "transformers generate() without speculation, on the same models",
}
"""Engines and what they run. They are loaded when asked for: they need the extra ``hf``."""

_LOADERS: dict[str, Callable[[], Subject]] = {
    **{f"reference:{row.name}": (lambda row=row: algorithm_subject(row)) for row in ALGORITHMS},  # type: ignore[misc]
    **{f"mutant:{mutant.name}": mutant.open for mutant in mutants()},
    **{name: (lambda name=name: _huggingface(name)) for name in ENGINES},  # type: ignore[misc]
}


def find_subject(name: str) -> Subject:
    """Return the subject called ``name``; raises ``UnusableSubject`` in one sentence."""
    try:
        known = _LOADERS | (_huggingface_rows() if name.startswith("hf:all/") else {})
        if name in known:
            return known[name]()
    except ImportError as error:
        raise UnusableSubject(f"{name} cannot be loaded: {error}") from error
    if not is_external(name):
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f", did you mean {near[0]}?" if near else ""
        raise UnusableSubject(f"there is no subject {name!r}{hint or ' (see: specverify list)'}")
    return external_subject(name)


def is_external(name: str) -> bool:
    """Return whether a name is that of somebody else's code, ``module:callable``."""
    return ":" in name and name.partition(":")[0] not in {"reference", "mutant", "hf"}


def expanded(name: str) -> tuple[str, ...]:
    """Return the names that ``name`` stands for: itself, unless it is a table."""
    if name not in TABLES:
        return (name,)
    try:
        return tuple(_huggingface_rows())
    except ImportError as error:
        raise UnusableSubject(f"{name} cannot be loaded: {error}") from error


def default_subjects() -> tuple[str, ...]:
    """Return what ``verify --all`` runs: every reference algorithm. Engines are asked for by name: they take longer."""
    return tuple(f"reference:{row.name}" for row in ALGORITHMS)
