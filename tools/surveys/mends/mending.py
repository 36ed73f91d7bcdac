"""Context manager that changes lines of an installed library while a ``with`` block runs."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any, NamedTuple


class Edit(NamedTuple):
    """Replace words in the source of a library function."""

    where: str
    """``module:function`` or ``module:Class.method``."""
    said: str
    instead: str
    times: int = 1
    """How often the words stand there: a library in which they do not is of another version."""


class Ours(NamedTuple):
    """Replace a function of the library by one of this project."""

    where: str
    make: Callable[[Any], Any]
    """``make(the library's)`` -> ours."""


Change = Edit | Ours


@contextmanager
def mended(changes: tuple[Change, ...]) -> Iterator[None]:
    """Context manager that applies ``changes`` to the library.

    Those of one function are applied in the listed order.
    """
    with ExitStack() as stack:
        for where in dict.fromkeys(change.where for change in changes):
            stack.enter_context(_function(where, [change for change in changes if change.where == where]))
        yield


@contextmanager
def _function(where: str, changes: list[Change]) -> Iterator[None]:
    """Context manager that changes one function. Edits replace its code object, so existing references change too."""
    owner, name = _found(where)
    library, inherited = getattr(owner, name), name not in vars(owner)
    plain, edits = inspect.unwrap(library), [change for change in changes if isinstance(change, Edit)]
    theirs = (plain.__code__, plain.__defaults__) if edits else ()
    if edits:
        plain.__code__, plain.__defaults__ = _edited(plain, edits)
    ours = library
    for change in changes:
        if isinstance(change, Ours):
            ours = change.make(ours)
    setattr(owner, name, ours)
    try:
        yield
    finally:
        if edits:
            plain.__code__, plain.__defaults__ = theirs
        if inherited:
            delattr(owner, name)
        else:
            setattr(owner, name, library)


def _found(where: str) -> tuple[Any, str]:
    """Return the module or class that contains the function ``where``, and the attribute's name."""
    module, _, path = where.partition(":")
    owner: Any = import_module(module)
    *classes, name = path.split(".")
    for each in classes:
        owner = getattr(owner, each)
    return owner, name


def _edited(plain: Any, edits: list[Edit]) -> tuple[Any, Any]:
    """Return the code object and the defaults that the edited source of a function defines."""
    source = textwrap.dedent(inspect.getsource(plain))
    for edit in edits:
        found = source.count(edit.said)
        if found != edit.times:
            raise LookupError(f"{edit.where} has {edit.said!r} {found} times, expected {edit.times}")
        source = source.replace(edit.said, edit.instead)
    made: dict[str, Any] = {}
    whole = f"def defined(__class__):\n{textwrap.indent(source, '    ')}\n    return {plain.__name__}"
    exec(compile(whole, f"{edits[0].where}, mended", "exec", dont_inherit=True), plain.__globals__, made)
    function = inspect.unwrap(made["defined"](None))
    return function.__code__, function.__defaults__
