"""Find the subject with a given name on the command line, and list all names."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import PurePath

from specverify.engines import Engine, Reproducer, engine_subjects, found_engines, tables
from specverify.mutants import mutants
from specverify.reference import ALGORITHMS
from specverify.subjects.algorithm import algorithm_subject
from specverify.subjects.external import external_subject
from specverify.subjects.subject import Subject, UnusableSubject

SIMILAR = 0.7
"""The least similarity, from 0 to 1, of a name that is suggested for an unknown one."""


@cache
def _loaders() -> dict[str, Callable[[], Subject]]:
    """Return the functions that load a subject, by its name, for all algorithms and all planted bugs.

    This imports the modules of all planted bugs, which takes time.
    """
    return {
        **{f"reference:{row.name}": partial(algorithm_subject, row) for row in ALGORITHMS},
        **{f"mutant:{mutant.name}": mutant.open for mutant in mutants()},
    }


def find_subject(name: str) -> Subject:
    """Return the subject called ``name``.

    Raises ``UnusableSubject`` with one sentence if there is none or it fails to load.
    """
    if name in _loaders():
        return _loaders()[name]()
    if is_external(name) and name.lower() not in _loaders():
        try:
            return external_subject(name)
        except UnusableSubject as error:
            if not isinstance(error.__cause__, ModuleNotFoundError) or error.__cause__.name != _prefix(name):
                raise
            near = difflib.get_close_matches(
                _prefix(name), ("reference", "mutant", *found_engines().engines), 1, SIMILAR
            )
            if not near:
                raise
            raise UnusableSubject(f"{error}, did you mean {near[0]}:{name.partition(':')[2]}?") from error.__cause__
    engine = engine_called(name)
    if engine is not None and name in {*engine_subjects(), *_expanded(_table_of(name))}:
        return _loaded(engine, name)
    raise UnusableSubject(f"there is no subject {name!r}{_hint(name)}")


def _hint(name: str) -> str:
    """Return the end of the message about the unknown name ``name``: a suggestion.

    The first of these that exists is suggested: a known name that differs only in upper case or a missing prefix;
    ``FILE:FUNCTION`` for a name that ends with ``.py``; ``module:callable`` for another name with a dot; the most
    similar known name, with the same prefix if the name has one; or ``specverify list``.
    """
    known = [*_loaders(), *engine_subjects(), *_expanded(_table_of(name))]
    by_plain_name = {full.partition(":")[2]: full for full in reversed(known)}
    if name.lower() in known or name.lower() in by_plain_name:
        return f", did you mean {by_plain_name.get(name.lower(), name.lower())}?"
    module, dot, attribute = name.rpartition(".")
    if ":" not in name and attribute == "py":
        return f": that is a file, expected a function of its module: {PurePath(module).name}:FUNCTION"
    if ":" not in name and dot and attribute.isidentifier():
        return f", did you mean {module}:{attribute}? (module:callable)"
    prefix, colon, rest = name.lower().rpartition(":")
    named = {full.removeprefix(prefix + colon): full for full in known if full.startswith(prefix + colon)}
    plain = named if colon else {full: full for full in known} | by_plain_name
    near = difflib.get_close_matches(rest, plain, 1, cutoff=SIMILAR)
    if near:
        return f", did you mean {plain[near[0]]}?"
    return " (see: specverify list)" if colon else " (see: specverify list; your own code is module:callable)"


def is_external(name: str) -> bool:
    """Return whether a name denotes foreign code, ``module:callable``."""
    result = found_engines()
    return ":" in name and _prefix(name) not in {"reference", "mutant", *result.engines, *result.unusable}


def engine_called(name: str) -> Engine | None:
    """Return the engine with whose prefix ``name`` begins; None if there is none.

    Raises ``UnusableSubject`` if the engine cannot be used.
    """
    result = found_engines()
    if _prefix(name) in result.unusable:
        raise UnusableSubject(result.unusable[_prefix(name)])
    return result.engines.get(_prefix(name)) if ":" in name else None


def reproducer_of(name: str) -> Reproducer | None:
    """Return the functions that write failures of the subject ``name`` as scripts; None if its engine has none."""
    engine = None if is_external(name) else engine_called(name)
    return None if engine is None else engine.reproducer


def written_as_scripts() -> str:
    """Return the names of the engines whose failures can be written as scripts, joined by "or", for a message.

    If there is none, the result is "no engine".
    """
    return " or ".join(engine.name for engine in found_engines().engines.values() if engine.reproducer) or "no engine"


def kinds_of_names() -> tuple[str, ...]:
    """Return the forms that the name of a subject can have, such as ``reference:NAME``, for a message."""
    return ("reference:NAME", *(f"{prefix}:NAME" for prefix in found_engines().engines), "module:callable")


def expanded(name: str) -> tuple[str, ...]:
    """Return the names that ``name`` stands for.

    An engine may have tables, each with many subjects. The name ``PREFIX:TABLE`` stands for all subjects of the table,
    any other name for itself.
    """
    return tuple(_expanded(name)) if name in tables() else (name,)


def within_table(name: str) -> str:
    """Return the last part of a name ``PREFIX:TABLE/NAME``; "" if ``name`` is no subject of an engine's table."""
    return name.partition("/")[2] if _table_of(name) in tables() else ""


def default_subjects() -> tuple[str, ...]:
    """Return the names of the subjects of ``verify --all``: every reference algorithm.

    Engines take longer, so the user must name them.
    """
    return tuple(f"reference:{row.name}" for row in ALGORITHMS)


def _expanded(table: str) -> Iterator[str]:
    """Yield the names of a table's subjects; nothing if there is no such table.

    Raises ``UnusableSubject`` if the engine of the table cannot be loaded.
    """
    engine = engine_called(table) if table in tables() else None
    if engine is not None:
        try:
            for inside in engine.tables[table.partition(":")[2]].names():
                yield f"{table}/{inside}"
        except Exception as error:
            raise _unusable(engine, table, error) from error


def _loaded(engine: Engine, name: str) -> Subject:
    try:
        subject = engine.load(name.partition(":")[2])
    except Exception as error:
        raise _unusable(engine, name, error) from error
    if not isinstance(subject, Subject):
        raise UnusableSubject(f"{name} is loaded as a {type(subject).__name__}, expected a Subject")
    return subject._replace(name=name)


def _unusable(engine: Engine, name: str, error: Exception) -> UnusableSubject:
    """Return the error for a subject that an engine could not load: it names the missing package, or the exception."""
    if not isinstance(error, ImportError):
        return UnusableSubject(f"{name} cannot be loaded: {type(error).__name__}: {error}")
    install = f'"{engine.requirement}"'
    return UnusableSubject(
        f"{name} cannot be loaded: {error}{'' if install in str(error) else f' (pip install {install})'}"
    )


def _prefix(name: str) -> str:
    return name.partition(":")[0]


def _table_of(name: str) -> str:
    return name.partition("/")[0]
