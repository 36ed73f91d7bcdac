"""Find and replace names that foreign code bound earlier: ``from random import random``, ``draw = rng.random``.

Such a name refers to the library's own method, so patching the module or the type does not reach it. The garbage
collector lists all methods bound to a generator, and the objects that refer to them. During interception, these
references are replaced in modules, objects, classes, closures, parameter defaults, lists and partial functions.
References from other kinds of objects are not replaced; the states of all generators with such a method are therefore
watched for draws that were not intercepted: see ``PROCESS.watched``.
"""

from __future__ import annotations

import functools
import gc
import operator
import random
import sys
import types
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from specverify.intercept.cpython.patches import once
from specverify.intercept.run import PROCESS

_LIBRARIES = {"random", "numpy.random", "numpy.random.mtrand", "numpy.random.bit_generator"}
"""Modules whose names are not replaced here: the front ends ``numpy`` and ``python`` replace some of them."""


class AliasPlace(NamedTuple):
    """A place that stores a reference (attribute, item, cell, default): ``look()`` reads it, ``put(x)`` sets it."""

    look: Callable[[], Any]
    put: Callable[[Any], None]


class Alias(NamedTuple):
    """A reference to a method of a generator: where it is stored (``place``), and the method (``before``).

    ``inside`` is the intercepted method, which replaces ``before`` at this place during interception.
    """

    place: AliasPlace
    before: Any
    inside: Any


GENERATORS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)
_LOOKED_FOR = (types.MethodType, types.BuiltinMethodType, types.FunctionType, *GENERATORS)
_ATTRIBUTES = type.__dict__["__dict__"].__get__
"""Reads the real ``__dict__`` of a class, even if the class overrides ``__dict__``."""
_CLOSURE, _DEFAULTS = operator.attrgetter("__closure__"), operator.attrgetter("__defaults__")
"""Read the cells and the default values of a function; there are many functions to search."""


class Everything:
    """A list of all objects of the process, as the garbage collector reports them, with look-ups by type."""

    def __init__(self) -> None:
        """List the objects of the process now."""
        self.objects = _of_kinds(gc.get_objects(), _LOOKED_FOR)

    def of(self, *kinds: type) -> list[Any]:
        """Return the listed objects whose type is one of ``kinds`` or a subclass of one."""
        return _of_kinds(self.objects, kinds)

    @functools.cached_property
    def functions(self) -> list[Any]:
        """Return all functions of the process."""
        return self.of(types.FunctionType)

    @functools.cached_property
    def by_defaults(self) -> dict[int, list[Any]]:
        """Return the functions with default values, by the identity of the tuple of these values.

        They are listed once, because Python raises an audit event each time the default values are read.
        """
        result: dict[int, list[Any]] = {}
        for item, defaults in zip(self.functions, map(_DEFAULTS, self.functions), strict=True):
            if defaults is not None:
                result.setdefault(id(defaults), []).append(item)
        return result

    @functools.cached_property
    def classes(self) -> dict[int, type]:
        """Return all classes of the process, keyed by the identity of their attribute dictionaries."""
        result: dict[int, type] = {}
        waiting: list[type] = [object]
        while waiting:
            kind = waiting.pop()
            if id(kind) not in result:
                result[id(kind)] = kind
                waiting += type.__subclasses__(kind)
        return {id(item): kind for kind in result.values() for item in gc.get_referents(_ATTRIBUTES(kind))}


class _AreOf(dict[type, bool]):
    """Map a type to True if it is a subclass of one of ``kinds``, else to False; entries are computed on demand."""

    def __init__(self, kinds: tuple[type, ...]) -> None:
        self._kinds = kinds

    def __missing__(self, kind: type) -> bool:
        self[kind] = result = issubclass(kind, self._kinds)
        return result


def _of_kinds(objects: list[Any], kinds: tuple[type, ...]) -> list[Any]:
    return list(compress(objects, map(_AreOf(kinds).__getitem__, map(type, objects))))


def forget() -> None:
    """Release the references and generators that ``find_aliases`` stored in earlier searches, to free memory."""
    PROCESS.aliases.clear()
    PROCESS.watched.clear()


def find_aliases(everything: Everything) -> None:
    """Search ``everything`` for references to methods of generators, and store them in ``PROCESS.aliases``.

    From then on these references are replaced during every interception. Generators with such a method are stored in
    ``PROCESS.watched``.
    """
    items = _answered_methods(everything)
    librarys = _held_by_libraries()
    # one that the libraries alone hold has no other name: nobody need be asked. Four hold it here, and each of them one
    elsewhere = [item for item in items if sys.getrefcount(item) != 4 + librarys.get(id(item), 0)]
    PROCESS.aliases[:] = [
        Alias(place, item, _answer_of(item)) for place, item in places_of(elsewhere, everything, items)
    ]
    watched = {id(item.__self__): item for item in items if not _is_librarys(item)}
    PROCESS.watched[:] = [
        (item.__self__, f"{type(item.__self__).__name__}.{item.__name__}") for item in watched.values()
    ]


def _answered_methods(everything: Everything) -> list[Any]:
    bound = everything.of(types.MethodType, types.BuiltinMethodType)
    owners = {kind for kind in {type(item.__self__) for item in bound} if issubclass(kind, tuple(PROCESS.methods))}
    return [item for item in bound if type(item.__self__) in owners and _answer_of(item) is not None]


def _held_by_libraries() -> Counter[int]:
    """Count, for each object, the global names in the modules of ``random`` and NumPy that refer to the object.

    The keys of the result are identities (``id``). These references are subtracted when references in foreign code are
    counted.
    """
    modules = [sys.modules[name] for name in _LIBRARIES if name in sys.modules]
    return Counter(id(item) for module in modules for item in vars(module).values())


@once
@contextmanager
def aliases_answered() -> Iterator[None]:
    """Context manager: while it is open, the references that ``find_aliases`` found refer to intercepted methods."""
    with exchanged(PROCESS.aliases):
        yield


@contextmanager
def exchanged(aliases: list[Alias]) -> Iterator[None]:
    """Context manager: while it is open, each of ``aliases`` refers to the replacement of its object.

    An alias is a reference that foreign code holds to an intercepted object, as after ``from random import random``. A
    reference that other code has changed meanwhile is neither replaced nor restored.
    """
    done: list[Alias] = []
    try:
        for alias in aliases:
            if alias.place.look() is alias.before:
                done.append(alias)
                alias.place.put(alias.inside)
        yield
    finally:
        for alias in done:
            if alias.place.look() is alias.inside:
                alias.place.put(alias.before)


def _answer_of(item: Any) -> Any:
    """Return the intercepted form of ``item``, a method bound to a generator.

    Returns None if there is no intercepted form, or if ``item`` is an intercepted method already.
    """
    owner = item.__self__
    kind = next((kind for kind in PROCESS.methods if issubclass(type(owner), kind)), None)
    answer = None if kind is None else PROCESS.methods[kind].get(item.__name__)
    if answer is None or getattr(item, "__func__", None) is answer:
        return None
    return types.MethodType(answer, owner)


def places_of(
    items: list[Any], everything: Everything, *apart: Any, but: Collection[str] = ()
) -> Iterator[tuple[AliasPlace, Any]]:
    """Yield (place of the reference, item) for every reference to one of ``items`` that can be changed.

    ``everything`` lists the objects of the process. References from the containers ``items``, ``everything`` and
    ``apart`` themselves are skipped, because they are part of this search, and so are those of the packages ``but``.
    """
    wanted = {id(item) for item in items}
    result, none = gc.get_referrers(*items) if items else [], set(map(id, (items, everything.objects, *apart)))
    holders = [holder for holder in result if id(holder) not in none and _package_of(holder) not in but]
    tuples = {id(holder) for holder in holders if isinstance(holder, tuple)}
    cells = {id(holder) for holder in holders if isinstance(holder, types.CellType)} if but else set()
    enclosing = compress(everything.functions, map(_CLOSURE, everything.functions)) if cells else ()
    closures = ((item, cell) for item in enclosing for cell in _CLOSURE(item))
    inner = {id(cell) for item, cell in closures if id(cell) in cells and _package_of(item) in but}
    with_tuple = [item for held in tuples for item in everything.by_defaults.get(held, ())]
    by_default = [item for item in with_tuple if _package_of(item) not in but]
    for holder in (*holders, *by_default):
        if id(holder) not in inner:
            for place in places_in(holder, wanted, everything):
                yield place, place.look()


def _package_of(holder: Any) -> str:
    """Return the package of ``holder``: globals of a module, attributes of a class, a function, or an object."""
    if isinstance(holder, dict):
        module = holder.get("__name__") or holder.get("__module__", "")
    else:
        module = getattr(holder if isinstance(holder, types.FunctionType) else type(holder), "__module__", "")
    return str(module).partition(".")[0]


def places_in(holder: Any, wanted: set[int], everything: Everything) -> Iterator[AliasPlace]:
    """Yield an ``AliasPlace`` for each reference in ``holder`` to an object whose identity is in ``wanted``.

    ``everything`` has the classes of the process. A holder that cannot be changed, such as a tuple, yields nothing.
    """
    if isinstance(holder, dict):
        if holder.get("__name__") not in _LIBRARIES:
            keys = [key for key, item in list(holder.items()) if id(item) in wanted]
            yield from (_entry(holder, key, everything) for key in keys)
    elif isinstance(holder, list):
        yield from (_item(holder, index) for index, item in enumerate([*holder]) if id(item) in wanted)
    elif isinstance(holder, types.CellType):
        yield _attribute(holder, "cell_contents")
    elif isinstance(holder, functools.partial) and id(holder.func) in wanted:
        yield AliasPlace(functools.partial(getattr, holder, "func"), functools.partial(_give_partial, holder))
    elif isinstance(holder, staticmethod):
        yield from _static(holder, everything)
    elif isinstance(holder, types.FunctionType):
        defaults = holder.__defaults__ or ()
        yield from (_default(holder, index) for index, item in enumerate(defaults) if id(item) in wanted)
    elif not isinstance(holder, (tuple, type, types.ModuleType, types.FrameType)):
        yield from (_attribute(holder, name) for name in _names(holder) if id(getattr(holder, name, None)) in wanted)


def _static(holder: Any, everything: Everything) -> Iterator[AliasPlace]:
    """Yield an ``AliasPlace`` for each class attribute whose value is ``holder``, a ``staticmethod`` object.

    The place reads and sets the function inside the object. ``everything`` has the classes of the process.
    """
    for attributes in gc.get_referrers(holder):
        for key in [key for key, item in attributes.items() if item is holder] if isinstance(attributes, dict) else ():
            yield _within(_entry(attributes, key, everything), holder)


def _within(place: AliasPlace, holder: Any) -> AliasPlace:
    return AliasPlace(
        lambda: getattr(place.look(), "__func__", None),
        lambda item: place.put(holder if item is holder.__func__ else staticmethod(item)),
    )


def _entry(holder: dict[Any, Any], key: Any, everything: Everything) -> AliasPlace:
    """Return an ``AliasPlace`` for the entry ``key`` of the dictionary ``holder``.

    If ``holder`` is the attribute dictionary of a class in ``everything``, the place sets the attribute by ``setattr``,
    so that the method cache of the class is invalidated.
    """
    owner = everything.classes.get(id(holder)) if "__module__" in holder else None
    if owner is not None:
        return AliasPlace(functools.partial(holder.get, key), functools.partial(setattr, owner, key))
    return AliasPlace(functools.partial(holder.get, key), functools.partial(holder.__setitem__, key))


def _item(holder: list[Any], index: int) -> AliasPlace:
    return AliasPlace(functools.partial(operator.getitem, holder, index), functools.partial(holder.__setitem__, index))


def _attribute(holder: Any, name: str) -> AliasPlace:
    return AliasPlace(
        functools.partial(getattr, holder, name, None), functools.partial(object.__setattr__, holder, name)
    )


def _names(holder: Any) -> list[str]:
    """Return the names of the attributes stored in ``holder`` itself, in its dictionary or in slots."""
    slots = [name for kind in type(holder).__mro__ for name, item in vars(kind).items()
             if isinstance(item, types.MemberDescriptorType) and "__slots__" in vars(kind)]  # fmt: skip
    return [*slots, *getattr(holder, "__dict__", {})]


def _default(function: types.FunctionType, index: int) -> AliasPlace:
    def put(item: Any) -> None:
        defaults = list(function.__defaults__ or ())
        defaults[index] = item
        function.__defaults__ = tuple(defaults)

    return AliasPlace(lambda: (function.__defaults__ or ())[index], put)


def _give_partial(holder: Any, function: Any) -> None:
    holder.__setstate__((function, holder.args, holder.keywords, vars(holder)))


def _is_librarys(item: Any) -> bool:
    """Return whether ``item`` is a global function of ``random`` or ``numpy.random``, such as ``random.random``."""
    library: Mapping[str, Any] = vars(np.random) if isinstance(item.__self__, np.random.RandomState) else vars(random)
    return bool(library.get(item.__name__) is item)
