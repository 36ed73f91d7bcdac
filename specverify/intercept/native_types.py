"""Methods of types written in C, replaced while a block is open.

Engines keep generators: in modules, closures and attributes, made long before anybody looks. Their types are immutable
for ``setattr``, so the entries of the type's own dictionary are exchanged and the method cache is told. Every instance
answers then, wherever it is kept. What was bound before (``f = rng.random``) holds the old method: see ``aliases``.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

_modified = ctypes.pythonapi.PyType_Modified
_modified.argtypes = [ctypes.py_object]
_modified.restype = None


@cache
def own_methods(kind: type) -> dict[str, Any]:
    """Return the dictionary of a type itself, not a copy or a view of it."""
    (found,) = gc.get_referents(kind.__dict__)
    if not isinstance(found, dict) or found.keys() != vars(kind).keys():
        raise RuntimeError(f"the methods of {kind.__name__} cannot be reached in this Python")
    return found


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
