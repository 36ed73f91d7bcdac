"""A library with lines of it changed from outside, for as long as a ``with`` lasts."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any, NamedTuple


class Edit(NamedTuple):
    """Words of a function that are read as others."""

    where: str
    """``module:function`` or ``module:Class.method``."""
    said: str
    instead: str
    times: int = 1
    """How often the words stand there: a library in which they do not is of another version."""


class Ours(NamedTuple):
    """A function of ours in the place of one of the library's."""

    where: str
    make: Callable[[Any], Any]
    """``make(the library's)`` -> ours."""


Change = Edit | Ours


@contextmanager
def mended(changes: tuple[Change, ...]) -> Iterator[None]:
    """Have the library changed: all changes of one function together, in the order in which they are listed."""
    with ExitStack() as stack:
        for where in dict.fromkeys(change.where for change in changes):
            stack.enter_context(_function(where, [change for change in changes if change.where == where]))
        yield


@contextmanager
def _function(where: str, changes: list[Change]) -> Iterator[None]:
    owner, name = _found(where)
    before, inherited = getattr(owner, name), name not in vars(owner)
    after = before
    edits = [change for change in changes if isinstance(change, Edit)]
    if edits:
        after = _edited(owner, name, before, edits)
    for change in changes:
        if isinstance(change, Ours):
            after = change.make(after)
    setattr(owner, name, after)
    try:
        yield
    finally:
        if inherited:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


def _found(where: str) -> tuple[Any, str]:
    """Return the module or class that has the function, and its name there."""
    module, _, path = where.partition(":")
    owner: Any = import_module(module)
    *classes, name = path.split(".")
    for each in classes:
        owner = getattr(owner, each)
    return owner, name


def _edited(owner: Any, name: str, function: Any, edits: list[Edit]) -> Any:
    """Return the function as its edited source defines it, in the module where it stands."""
    plain = inspect.unwrap(function)
    source = textwrap.dedent(inspect.getsource(plain))
    for edit in edits:
        found = source.count(edit.said)
        if found != edit.times:
            raise LookupError(f"{edit.where} has {edit.said!r} {found} times, expected {edit.times}")
        source = source.replace(edit.said, edit.instead)
    if inspect.isclass(owner):
        source = source.replace("super()", f"super({owner.__name__}, self)")
    made: dict[str, Any] = {}
    exec(compile(source, f"{edits[0].where}, mended", "exec", dont_inherit=True), plain.__globals__, made)
    return made[name]
