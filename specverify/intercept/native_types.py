"""Attributes of modules and methods of types, those written in C as well, replaced while a block is open.

Engines keep generators: in modules, closures and attributes, made long before anybody looks. Their types are immutable
for ``setattr``, so the entries of the type's own dictionary are exchanged and the method cache is told. Every instance
answers then, wherever it is kept. What was bound before (``f = rng.random``) holds the old method: see ``aliases``.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, wraps
from types import ModuleType
from typing import Any

from specverify.intercept.run import RUNS

_modified = ctypes.pythonapi.PyType_Modified
_modified.argtypes = [ctypes.py_object]
_modified.restype = None


@cache
def own_methods(kind: type) -> dict[str, Any]:
    """Return the dictionary of a type itself, not a copy or a view of it."""
    (result,) = gc.get_referents(kind.__dict__)
    if not isinstance(result, dict) or result.keys() != vars(kind).keys():
        raise RuntimeError(f"the methods of {kind.__name__} cannot be reached in this Python")
    return result


@contextmanager
def methods_replaced(kind: type, values: Mapping[str, Any]) -> Iterator[None]:
    """Give a type other methods inside the block, and after it those it had; only names that it has itself."""
    methods = own_methods(kind)
    before = {name: methods[name] for name in values}
    methods.update(values)
    _modified(kind)
    try:
        yield
    finally:
        methods.update(before)
        _modified(kind)


_NOTHING = nullcontext()


def once(block: Callable[[], AbstractContextManager[None]]) -> Callable[[], AbstractContextManager[None]]:
    """Return the same block, entered once: inside itself it does nothing."""
    name = f"{block.__module__}.{block.__qualname__}"

    @contextmanager
    def entering() -> Iterator[None]:
        with block():
            RUNS.patched.add(name)
            try:
                yield
            finally:
                RUNS.patched.discard(name)

    @wraps(block)
    def entered() -> AbstractContextManager[None]:
        return _NOTHING if name in RUNS.patched else entering()

    return entered


@contextmanager
def replaced(target: Any, values: dict[str, Any]) -> Iterator[None]:
    """Give a module or class other attributes inside the block, and what it had before after it."""
    own = vars(target)
    before = {name: own[name] for name in values if name in own}
    try:
        _give(target, values)
        yield
    finally:
        _give(target, before)
        if len(before) < len(values):
            for name in values.keys() - before.keys():
                if name in own:
                    delattr(target, name)


def _give(target: Any, values: Mapping[str, Any]) -> None:
    """Set attributes; those of a module in one step, for this is done twice in every run."""
    if isinstance(target, ModuleType):
        vars(target).update(values)
        return
    for name, value in values.items():
        setattr(target, name, value)
