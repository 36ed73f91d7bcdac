"""Calls of ``float`` in foreign code, led elsewhere while a block is open.

``float(u)`` makes a plain float of whatever ``u`` says it is, and a plain float has a value. The type cannot be another
one meanwhile: it is compared, and stands for a dtype. So where a call of it has asked for the value of a random number,
the functions of that module get code in which the calls of ``float``, nothing else that is done with it, go to another
name. Names of functions of ``math`` in such a module, as ``from math import log`` makes them, are exchanged too.
"""

from __future__ import annotations

import dis
import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any, NamedTuple, TypeVar
from weakref import ReferenceType, ref

from specverify.intercept.caller import foreign_frame

Found = TypeVar("Found")

_NAME = "float of what may be a random number"
"""No name that code can have of itself."""
_MOST_NAMES = 128
"""An instruction of two bytes reaches no name behind these."""


class _Module(NamedTuple):
    """A module that has asked."""

    names: dict[str, Any]
    functions: tuple[tuple[ReferenceType[FunctionType], CodeType, CodeType], ...]
    """Those that call ``float``, with their code as it is and as it is led."""
    of_c: tuple[tuple[str, Any], ...]
    """The names that stand for functions written in C."""


_met: dict[int, _Module] = {}
_MOST_ALIKE = 8
"""So often a function that is defined again is looked at: one that is made in every run has no end."""
_asked: dict[tuple[int, int], CodeType] = {}
"""The code that has asked, by its identity and that of its module: what is defined again is another function."""


def again(run: Callable[[], Found]) -> Found:
    """Return what ``run`` returns, run again as long as other code asks: what was refused is answered then."""
    while True:
        before = len(_asked)
        try:
            found = run()
        except Exception:
            if before == len(_asked):
                raise
            continue
        if before == len(_asked):
            return found


def met() -> None:
    """Look at the module of the foreign code that asks for the value of a random number now."""
    frame = foreign_frame()
    if frame is None:
        return
    code, names = frame.f_code, frame.f_globals
    asked = id(code), id(names)
    if asked in _asked or sum(item == code for item in _asked.values()) >= _MOST_ALIKE:
        return
    _asked[asked] = code
    before = _met.get(id(names), _Module(names, (), ()))
    known = {id(function()) for function, *_ in before.functions}
    plain = names.get("float", float) is float
    functions = [item for item in gc.get_objects() if type(item) is FunctionType and item.__globals__ is names]
    led = [(ref(item), item.__code__, _led(item.__code__)) for item in functions if plain and id(item) not in known]
    more = tuple(entry for entry in led if entry[1] is not entry[2])
    of_c = tuple((name, item) for name, item in names.items() if type(item) is BuiltinFunctionType)
    _met[id(names)] = _Module(names, before.functions + more, before.of_c or of_c)


@contextmanager
def calls_led(answer: Callable[..., Any], functions: Mapping[Any, Any]) -> Iterator[None]:
    """Let calls of ``float`` go to ``answer`` inside the block, and names of the keys of ``functions`` be its values.

    The modules are those that have asked before the block.
    """
    modules = [*_met.values()]
    try:
        for module in modules:
            module.names[_NAME] = answer  # it stays: a function that is made in the block may be called after it
            _exchange(module, functions, back=False)
        yield
    finally:
        for module in modules:
            _exchange(module, functions, back=True)


def _exchange(module: _Module, functions: Mapping[Any, Any], *, back: bool) -> None:
    """Put in the place of each thing what stands for it, or the other way; where neither stands is nothing done."""
    for found, *codes in module.functions:
        function = found()
        before, after = reversed(codes) if back else codes
        if function is not None and function.__code__ is before:
            function.__code__ = after
    for name, item in module.of_c:
        pair = item, functions.get(item, item)
        before, after = reversed(pair) if back else pair
        if module.names.get(name) is before:
            module.names[name] = after


def _led(code: CodeType) -> CodeType:
    """Return the code with its calls of the global ``float`` led to the other name; the same one if it has none."""
    constants = tuple(_led(item) if isinstance(item, CodeType) else item for item in code.co_consts)
    if any(new is not old for new, old in zip(constants, code.co_consts, strict=True)):
        code = code.replace(co_consts=constants)
    places = [item.offset for item in dis.get_instructions(code) if _is_call(item)]
    if not places or len(code.co_names) >= _MOST_NAMES:
        return code
    instructions = bytearray(code.co_code)
    for place in places:
        instructions[place + 1] = 2 * len(code.co_names) + 1
    return code.replace(co_code=bytes(instructions), co_names=(*code.co_names, _NAME))


def _is_call(instruction: dis.Instruction) -> bool:
    """Return whether it loads the global ``float`` to call it: the last bit of its argument says so."""
    loads = instruction.opname == "LOAD_GLOBAL" and instruction.argval == "float"
    return loads and bool(instruction.arg and instruction.arg & 1)
