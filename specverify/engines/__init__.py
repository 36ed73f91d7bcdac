"""Engines: libraries that decode, examined unmodified. Each engine is a folder here that defines one ``ENGINE``.

Other packages register an engine by an entry point in the group ``specverify.engines``. The name of the entry point is
the prefix in the names of its subjects, ``PREFIX:NAME``. No module outside the folder of an engine imports from that
folder. Reading an ``ENGINE`` does not import its library, because the command line lists all engines.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # what an engine is called is asked before anything of it is loaded
    from specverify.intercept.torch.passes import Passes  # it needs torch
    from specverify.subjects.fault import Fault
    from specverify.subjects.observer import ReadPass
    from specverify.subjects.subject import EngineProgram, Subject

GROUP = "specverify.engines"
OF_THE_CORE = ("reference", "mutant")
"""Prefixes that no engine may have."""


class Table(NamedTuple):
    """A group of subjects of one engine, with a summary; their names are ``TABLE/NAME``.

    The names are listed only on demand, because listing them may import the library of the engine.
    """

    summary: str
    names: Callable[[], Iterable[str]]
    """``names()`` returns the names after the slash; it may import the library."""


class Reproducer(NamedTuple):
    """Functions that write a failing call of an engine as a script that runs without specverify, for a bug report."""

    script: Callable[[Any, Fault], str]
    """``script(source, fault)`` returns the script for an ``EngineProgram.source``, or raises ``fault.NoScript``. The
    script prints the expected and the observed result, and ends with status 1 if the fault occurs."""
    smaller: Callable[[Any], Iterable[tuple[str, EngineProgram]]]
    """``smaller(source)`` yields (description, call) for each call with one option or token fewer, such as ``horizon
    2``."""
    clearer: Callable[[Any], Iterable[tuple[str, EngineProgram]]] = lambda source: ()
    """``clearer(source)`` yields (description, call) for calls that may show a fault in fewer calls."""


def no_passes(_: Any) -> Passes | None:
    """Return None: the value of ``Engine.passes`` for an engine whose forward passes cannot be cached."""
    return None


class Engine(NamedTuple):
    """One library to examine: its names, its subjects, and the function that loads a subject.

    Optional fields write failing calls as scripts (``reproducer``) and describe forward passes of the library's models,
    to compare their caches with the text they should hold (``reads``) and to reuse their results (``passes``).
    """

    name: str
    """The name in the library's documentation."""
    prefix: str
    """Prefix of the names of its subjects, which are ``PREFIX:NAME``."""
    requirement: str
    """The argument of ``pip install`` that installs the library, such as a distribution with an extra."""
    subjects: Mapping[str, str]
    """NAME -> one-line description of the subject."""
    load: Callable[[str], Subject]
    """``load(name)`` returns the subject NAME, or ``TABLE/NAME`` of a table; it may import the library."""
    tables: Mapping[str, Table] = {}
    """TABLE -> its description and the names in it."""
    reproducer: Reproducer | None = None
    reads: Callable[[Any], ReadPass | None] = lambda model: None
    """``reads(model)`` returns a function that describes the cache and the input of a call of ``model``; None if the
    model is not of this library."""
    passes: Callable[[Any], Passes | None] = no_passes
    """``passes(model)`` describes the data on which forward passes of ``model`` depend, so that they can be cached;
    None if the model is not of this library."""


def sampled_engine(package: str, *, name: str, requirement: str, call: str) -> Engine:
    """Return an engine for a library whose random draws cannot be intercepted, so that its texts are only sampled.

    ``package`` is the ``__name__`` of the engine's folder. The folder has a module ``rows`` with a function ``rows()``.
    It returns name -> ``subjects.decoding.EngineRow`` (the texts to sample, and their law), one for each subject.
    ``name`` is the name of the library, ``requirement`` the argument of ``pip install``, and ``call`` the name of the
    library's function that is sampled.
    """
    prefix = package.rpartition(".")[2]
    summary = f"every way in which it speculates, in every situation: {prefix}:all/NAME each"
    rows = partial(_rows_of, package)
    return Engine(name, prefix, requirement, {}, partial(_sampled_row, rows, call), {"all": Table(summary, rows)})


def _rows_of(package: str) -> Mapping[str, Any]:
    rows: Mapping[str, Any] = import_module(f"{package}.rows").rows()
    return rows


def _sampled_row(rows: Callable[[], Mapping[str, Any]], call: str, name: str) -> Subject:
    from specverify.subjects.decoding import row_subject  # noqa: PLC0415 - the command line asks engines for names alone

    row = name.partition("/")[2]
    return row_subject(row, f"{call}, unmodified: {row}", rows()[row])


class FoundEngines(NamedTuple):
    """All engines: those whose entry point could be loaded, and for each of the others the reason why not.

    The library of a loaded engine need not be installed.
    """

    engines: Mapping[str, Engine]
    """Prefix of subject names -> engine."""
    unusable: Mapping[str, str]
    """Prefix -> sentence with the reason why the entry point of its engine could not be loaded."""


@cache
def found_engines() -> FoundEngines:
    """Return the engines of this package and of all installed packages.

    An error in one engine does not affect the others.
    """
    engines, unusable = dict[str, Engine](), dict[str, str]()
    for prefix, places in sorted(_places().items()):
        try:
            engines[prefix] = _engine(prefix, places)
        except Exception as error:  # noqa: BLE001 - somebody else's module may raise anything when it is imported
            said = str(error) if isinstance(error, _Wrong) else f"{type(error).__name__}: {error}"
            unusable[prefix] = f"the engine {prefix!r} ({', '.join(places)}) cannot be used: {said}"
    return FoundEngines(engines, unusable)


def engine_subjects() -> dict[str, str]:
    """Return name of a subject -> its one-line summary, for all engines."""
    return {
        f"{prefix}:{name}": summary
        for prefix, engine in found_engines().engines.items()
        for name, summary in engine.subjects.items()
    }


def tables() -> dict[str, str]:
    """Return ``PREFIX:TABLE`` -> one-line summary, for each group of subjects of each engine that could be loaded.

    The library of an engine need not be installed.
    """
    return {
        f"{prefix}:{name}": table.summary
        for prefix, engine in found_engines().engines.items()
        for name, table in engine.tables.items()
    }


class _Wrong(Exception):  # noqa: N818 - reads as the sentence it is
    """Raised if an entry point is not a valid engine; the message is the reason."""


def _engine(prefix: str, places: list[str]) -> Engine:
    if prefix in OF_THE_CORE or not re.fullmatch(r"[a-z][a-z0-9_-]*", prefix):
        raise _Wrong(f"a prefix is lower case, digits, - and _, and not {' or '.join(OF_THE_CORE)}")
    if len(places) > 1:
        raise _Wrong("several packages claim the prefix, expected one")
    module, _, attribute = places[0].partition(":")
    result = getattr(import_module(module), attribute)
    if not isinstance(result, Engine):
        raise _Wrong(f"it is a {type(result).__name__}, expected a specverify.engines.Engine")
    if result.prefix != prefix:
        raise _Wrong(f"it has the prefix {result.prefix!r}, expected that of its entry point")
    return result


def _places() -> dict[str, list[str]]:
    """Return prefix -> entry points ``module:attribute`` of the engine with this prefix.

    There are several entry points if two packages use the same prefix, which is an error.
    """
    result: dict[str, list[str]] = {}
    for prefix, place in (*((point.name, point.value) for point in entry_points(group=GROUP)), *_own_places()):
        listed = result.setdefault(prefix, [])
        if place not in listed:
            listed.append(place)
    return result


def _own_places() -> Iterator[tuple[str, str]]:
    """Yield (prefix, ``module:attribute``) of each engine in this folder.

    Entry points are not used, because those of an installed version may differ from this code.
    """
    for item in pkgutil.iter_modules(__path__, f"{__name__}."):
        engine: Engine = import_module(item.name).ENGINE
        yield engine.prefix, f"{item.name}:ENGINE"
