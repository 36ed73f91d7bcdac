"""Which libraries (torch, NumPy, JAX) the code of a function uses."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from itertools import chain
from types import CodeType, ModuleType
from typing import Any

from specverify.base.callables import innermost


def names_library(function: Callable[..., Any], library: str) -> bool:
    """Return whether the code of ``function`` names ``library``, or names a global that ``library`` defines.

    Also returns True if ``function`` is an object of a class that ``library`` defines.
    """
    if _comes_from(function, library, by_type=True):
        return True
    function = innermost(function)
    code = _code_of(function)
    scope = getattr(function, "__globals__", {})
    return any(name == library or _comes_from(scope.get(name), library) for name in _names(code))


def imported_beside(function: Callable[..., Any], library: str) -> bool:
    """Return whether the module of a function has imported a library."""
    scope = getattr(innermost(function), "__globals__", {})
    return any(isinstance(value, ModuleType) and _comes_from(value, library) for value in scope.values())


def named_functions(function: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """Yield the functions that the code of ``function`` mentions and that are globals of its module."""
    function = innermost(function)
    scope = getattr(function, "__globals__", {})
    yield from filter(inspect.isfunction, map(scope.get, _names(getattr(function, "__code__", None))))


def passes_keyword(function: Callable[..., Any], keyword: str) -> bool:
    """Return whether ``function``, or a function of its module that it mentions, passes the argument ``keyword``."""
    open_ones, seen = [function], list[Any]()
    while open_ones:
        one = innermost(open_ones.pop())
        if one in seen:
            continue
        seen.append(one)
        if any(isinstance(constant, tuple) and keyword in constant for constant in _constants(_code_of(one))):
            return True
        open_ones += named_functions(one)
    return False


def _code_of(function: Any) -> CodeType | None:
    """Return the code that a call of ``function`` executes; None if it is not written in Python."""
    return getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)


def _constants(code: CodeType | None) -> Iterator[Any]:
    """Yield the constants of ``code``, and of the functions that are defined in it.

    Among them are the names of the keyword arguments of each call, as one tuple.
    """
    for constant in code.co_consts if code is not None else ():
        if isinstance(constant, CodeType):
            yield from _constants(constant)
        else:
            yield constant


def _names(code: CodeType | None) -> Iterator[str]:
    if code is None:
        return
    yield from chain(code.co_names, code.co_freevars)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _comes_from(value: Any, library: str, *, by_type: bool = False) -> bool:
    """Return whether ``value`` is a module of ``library`` or is defined in such a module.

    With ``by_type``, return whether the type of ``value`` is defined in such a module.
    """
    of = type(value) if by_type else value
    name = value.__name__ if isinstance(value, ModuleType) else getattr(of, "__module__", None)
    return isinstance(name, str) and name.partition(".")[0] in {library, f"{library}lib"}
