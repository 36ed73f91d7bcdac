"""Calls of ``float`` and of NumPy's floating types in foreign code, led elsewhere while a block is open.

``float(u)`` makes a plain float of whatever ``u`` says it is, and a plain float has a value. The type cannot be another
one meanwhile: it is compared, and stands for a dtype. So where a call of it has asked for the value of a random number,
the functions of that module get code in which the calls of ``float``, nothing else that is done with it, go to another
name. So do calls of ``np.float32`` and its like, by that name or as an attribute of the module's name for NumPy. Names
of functions of ``math`` in such a module, as ``from math import log`` makes them, are exchanged too.
"""

from __future__ import annotations

import builtins
import dis
import gc
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any, NamedTuple, TypeVar
from weakref import ReferenceType, ref

import numpy as np

from specverify.intercept.caller import foreign_frame
from specverify.intercept.run import PROCESS

Found = TypeVar("Found")

_NAME = "{} of what may be a random number"
"""No name that code can have of itself."""
TYPES: dict[Any, str] = {float: _NAME.format("float")} | {
    kind: _NAME.format(kind.__name__) for kind in (np.float16, np.float32, np.float64, np.longdouble)
}
"""The types whose calls are led, and the names that they go to."""
_MOST_NAMES = 128
"""An instruction of two bytes reaches no name behind these."""


class _Module(NamedTuple):
    """A module that has asked."""

    names: dict[str, Any]
    functions: tuple[tuple[ReferenceType[FunctionType], CodeType, CodeType], ...]
    """Those that call ``float``, with their code as it is and as it is led."""
    of_c: tuple[tuple[str, Any], ...]
    """The names that stand for functions written in C."""


_MOST_ALIKE = 8
"""So often a function that is defined again is looked at: one that is made in every run has no end."""


def again(run: Callable[[], Found]) -> Found:
    """Return what ``run`` returns, run again as long as other code asks: what was refused is answered then."""
    while True:
        before = len(PROCESS.float_code)
        try:
            result = run()
        except Exception:
            if before == len(PROCESS.float_code):
                raise
            continue
        if before == len(PROCESS.float_code):
            return result


def met() -> None:
    """Look at the module of the foreign code that asks for the value of a random number now."""
    frame = foreign_frame()
    if frame is None:
        return
    code, names = frame.f_code, frame.f_globals
    asked = id(code), id(names)
    if asked in PROCESS.float_code or sum(item == code for item in PROCESS.float_code.values()) >= _MOST_ALIKE:
        return
    PROCESS.float_code[asked] = code
    before = PROCESS.float_modules.get(id(names), _Module(names, (), ()))
    known = {id(function()) for function, *_ in before.functions}
    functions = [item for item in gc.get_objects() if type(item) is FunctionType and item.__globals__ is names]
    led = [(ref(item), item.__code__, _led(item.__code__, names)) for item in functions if id(item) not in known]
    more = tuple(entry for entry in led if entry[1] is not entry[2])
    of_c = tuple((name, item) for name, item in names.items() if type(item) is BuiltinFunctionType)
    PROCESS.float_modules[id(names)] = _Module(names, before.functions + more, before.of_c or of_c)


@contextmanager
def calls_led(answers: Mapping[Any, Callable[..., Any]], functions: Mapping[Any, Any]) -> Iterator[None]:
    """Let calls of types go to their ``answers`` inside the block, and the keys of ``functions`` be their values.

    The modules are those that have asked before the block.
    """
    modules = [*PROCESS.float_modules.values()]
    named = {TYPES[kind]: answer for kind, answer in answers.items()}
    try:
        for module in modules:
            module.names.update(named)  # they stay: a function that is made in the block may be called after it
            vars(np).update(named)
            _exchange(module, functions, back=False)
        yield
    finally:
        for module in modules:
            _exchange(module, functions, back=True)


def _exchange(module: _Module, functions: Mapping[Any, Any], *, back: bool) -> None:
    """Put in the place of each thing what stands for it, or the other way; where neither stands is nothing done."""
    for result, *codes in module.functions:
        function = result()
        before, after = reversed(codes) if back else codes
        if function is not None and function.__code__ is before:
            function.__code__ = after
    for name, item in module.of_c:
        pair = item, functions.get(item, item)
        before, after = reversed(pair) if back else pair
        if module.names.get(name) is before:
            module.names[name] = after


def _led(code: CodeType, names: Mapping[str, Any]) -> CodeType:
    """Return the code with its calls of floating types led to other names; the same one if it has none.

    ``names`` are the globals that it is run with.
    """
    constants = tuple(_led(item, names) if isinstance(item, CodeType) else item for item in code.co_consts)
    if any(new is not old for new, old in zip(constants, code.co_consts, strict=True)):
        code = code.replace(co_consts=constants)
    places = [*_calls(code, names)]
    more = tuple(dict.fromkeys(name for _, name in places))
    if not places or len(code.co_names) + len(more) > _MOST_NAMES:
        return code
    instructions = bytearray(code.co_code)
    for place, name in places:
        index, bits = len(code.co_names) + more.index(name), _FLAGGED.get(dis.opname[instructions[place]], 0)
        instructions[place + 1] = (index << bits) | (instructions[place + 1] & bits)
    return code.replace(co_code=bytes(instructions), co_names=(*code.co_names, *more))


_FLAGGED = {"LOAD_GLOBAL": 1} | ({} if sys.version_info < (3, 12) else {"LOAD_ATTR": 1})
"""Instructions whose argument has a bit beside the place of a name: it says that what is loaded is called."""


def _calls(code: CodeType, names: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """Yield where a floating type is loaded to be called, and the name that the call is to go to.

    It is a global, or an attribute of a global that is NumPy. How a call of an attribute is compiled depends on where
    the global was imported, and on the version of Python.
    """
    listed = [*dis.get_instructions(code)]
    for before, item, behind in zip([None, *listed], listed, [*listed[1:], None], strict=False):
        if item.opname == "LOAD_GLOBAL":
            result, called = names.get(item.argval, getattr(builtins, item.argval, None)), _is_flagged(item)
        elif before is not None and before.opname == "LOAD_GLOBAL" and names.get(before.argval) is np:
            result = getattr(np, item.argval, None) if item.opname in _ATTRIBUTES else None
            follows = "" if behind is None else behind.opname
            called = _is_flagged(item) or follows == "PUSH_NULL" or (_is_flagged(before) and follows not in _ATTRIBUTES)
        else:
            continue
        if called and isinstance(result, type) and result in TYPES:
            yield item.offset, TYPES[result]


_ATTRIBUTES = {"LOAD_ATTR", "LOAD_METHOD"}


def _is_flagged(item: dis.Instruction) -> bool:
    """Return whether an instruction says by itself that what it loads is called."""
    return item.opname == "LOAD_METHOD" or bool(item.opname in _FLAGGED and item.arg and item.arg & 1)
