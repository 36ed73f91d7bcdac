"""Engines: libraries that decode, examined as they are. Each is a folder that ends in one ``ENGINE``: what it is.

Other packages bring theirs by an entry point in the group ``specverify.engines``, named by the prefix. Nothing outside
a folder knows what is inside, and saying what an engine is imports nothing of it: the command line asks all of them.
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
    """A name that stands for many subjects, ``TABLE/NAME`` each."""

    summary: str
    names: Callable[[], Iterable[str]]
    """What stands behind the stroke. It may import the engine."""


class Reproducer(NamedTuple):
    """What writes a failure of an engine's call as a script that needs the engine alone."""

    script: Callable[[Any, Fault], str]
    """``script(source, fault)``, of an ``EngineProgram.source``: the script; raises ``fault.NoScript``. It prints what
    is expected and what is got, and ends with status 1 while the fault is there."""
    smaller: Callable[[Any], Iterable[tuple[str, EngineProgram]]]
    """``smaller(source)``: the calls with one thing less, each with what it is: such as ``horizon 2``."""
    clearer: Callable[[Any], Iterable[tuple[str, EngineProgram]]] = lambda source: ()
    """``clearer(source)``: calls that are no smaller, at which a fault may be seen in fewer calls."""


def no_passes(_: Any) -> Passes | None:
    """Know no model: what an engine says that hands out no models whose passes could be remembered."""
    return None


class Engine(NamedTuple):
    """One engine: what it is called, what of it can be examined, and what only it knows."""

    name: str
    """As its documentation calls it."""
    prefix: str
    """Its subjects are called ``PREFIX:NAME``."""
    requirement: str
    """What ``pip install`` is told for it, such as a distribution with an extra."""
    subjects: Mapping[str, str]
    """NAME -> one line on what it is."""
    load: Callable[[str], Subject]
    """Return the subject NAME, or the one of a table, ``TABLE/NAME``. It may import the engine."""
    tables: Mapping[str, Table] = {}
    """TABLE -> what it stands for."""
    reproducer: Reproducer | None = None
    reads: Callable[[Any], ReadPass | None] = lambda model: None
    """``reads(model)``: what tells of a call of it what its cache holds and what it is fed, if the engine knows it."""
    passes: Callable[[Any], Passes | None] = no_passes
    """``passes(model)``: what its forward passes depend on, if the engine knows it; then they can be remembered."""


def sampled_engine(package: str, *, name: str, requirement: str, call: str) -> Engine:
    """Return the engine of a folder whose draws nobody can answer; ``package`` is the folder's ``__name__``.

    Its module ``rows`` has a function ``rows() -> {NAME: subjects.decoding.Row}``, and may import the engine. ``call``
    says what is sampled, as its documentation calls it.
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
    """Every engine there is."""

    engines: Mapping[str, Engine]
    """Prefix -> engine."""
    unusable: Mapping[str, str]
    """Prefix -> why nothing can be made of what was found under it, in a sentence."""


@cache
def found_engines() -> FoundEngines:
    """Return the engines of this package and of all installed ones; what is wrong with one concerns no other."""
    engines, unusable = dict[str, Engine](), dict[str, str]()
    for prefix, places in sorted(_places().items()):
        try:
            engines[prefix] = _engine(prefix, places)
        except Exception as error:  # noqa: BLE001 - somebody else's module may raise anything when it is imported
            said = str(error) if isinstance(error, _Wrong) else f"{type(error).__name__}: {error}"
            unusable[prefix] = f"the engine {prefix!r} ({', '.join(places)}) cannot be used: {said}"
    return FoundEngines(engines, unusable)


def engine_subjects() -> dict[str, str]:
    """Return the subjects of all engines and what they are. They are loaded when asked for: they need their engine."""
    return {
        f"{prefix}:{name}": summary
        for prefix, engine in found_engines().engines.items()
        for name, summary in engine.subjects.items()
    }


def tables() -> dict[str, str]:
    """Return the names that stand for many subjects, and what for."""
    return {
        f"{prefix}:{name}": table.summary
        for prefix, engine in found_engines().engines.items()
        for name, table in engine.tables.items()
    }


class _Wrong(Exception):  # noqa: N818 - reads as the sentence it is
    """What was found is no engine, and why."""


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
    """Return prefix -> where its engine is, ``module:attribute``; one place, unless packages are at odds."""
    result: dict[str, list[str]] = {}
    for prefix, place in (*((point.name, point.value) for point in entry_points(group=GROUP)), *_own_places()):
        listed = result.setdefault(prefix, [])
        if place not in listed:
            listed.append(place)
    return result


def _own_places() -> Iterator[tuple[str, str]]:
    """Yield our own folders as they are.

    Entry points are read from what is installed, which may be of another day than this code: a checkout on PYTHONPATH,
    or one that was installed in place before it had this folder. An engine of ours is there if its folder is.
    """
    for item in pkgutil.iter_modules(__path__, f"{__name__}."):
        engine: Engine = import_module(item.name).ENGINE
        yield engine.prefix, f"{item.name}:ENGINE"
