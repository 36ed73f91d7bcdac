# ruff: noqa: PLC0414 - such an alias exports a name
"""Patch the interpreter and libraries during interception, and keep the original functions.

A block is a ``with`` block in which random calls are intercepted.

**Originals.** In a block, ``math`` and NumPy have replaced functions: ``np.empty`` returns arrays that can hold
symbolic numbers. Code of this package therefore imports the original functions from this module.

**Attributes and methods.** Engines store generators in modules, closures and attributes, made long before a block. The
generator types reject ``setattr``, so the entries of the type's dictionary are replaced and the method cache is
invalidated. Every instance is then intercepted, wherever it is stored. A method bound earlier (``f = rng.random``) is
still the original: see ``aliases``.

**Calls of ``float``** and of NumPy's floating types. ``float(u)`` makes a plain float, so it fails for a symbolic
number u. The type itself cannot be replaced, because code compares it and uses it as a dtype. After the first such
failure, the functions of the calling module get new code: calls of ``float``, but no other uses, become calls of
another global name, which accepts symbolic numbers. The same applies to calls of ``np.float32`` and similar types.
Names of functions of ``math`` in such a module, from ``from math import log``, are replaced too.

**Threads.** The methods of NumPy and ``random`` are intercepted in every thread. Functions of torch are intercepted per
thread, so a new thread, and a task of an existing pool, enters the block first. If a draw in a thread is refused, the
block records the refusal and raises it at its end, so it is not printed. Errors of threads that continue after the end
of a run or after a refusal are not printed either.
"""

from __future__ import annotations

import _thread
import builtins
import ctypes
import dis
import gc
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import copy_context
from functools import cache, wraps
from math import (
    ceil as ceil,
)
from math import (
    copysign as copysign,
)
from math import (
    exp as exp,
)
from math import (
    expm1 as expm1,
)
from math import (
    factorial as factorial,
)
from math import (
    floor as floor,
)
from math import (
    frexp as frexp,
)
from math import (
    inf as inf,
)
from math import (
    isclose as isclose,
)
from math import (
    isfinite as isfinite,
)
from math import (
    isinf as isinf,
)
from math import (
    isnan as isnan,
)
from math import (
    ldexp as ldexp,
)
from math import (
    log as log,
)
from math import (
    pi as pi,
)
from math import (
    prod as prod,
)
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple, TypeVar
from weakref import ReferenceType, ref

import numpy as np
from numpy import (
    append as append,
)
from numpy import (
    array as array,
)
from numpy import (
    asarray as asarray,
)
from numpy import (
    broadcast_arrays as broadcast_arrays,
)
from numpy import (
    broadcast_to as broadcast_to,
)
from numpy import (
    concatenate as concatenate,
)
from numpy import (
    count_nonzero as count_nonzero,
)
from numpy import (
    empty as empty,
)
from numpy import (
    expand_dims as expand_dims,
)
from numpy import (
    full as full,
)
from numpy import (
    moveaxis as moveaxis,
)

from specverify.intercept.caller import foreign_frame
from specverify.intercept.cpython.frozen import frozen_seen
from specverify.intercept.refusals import NeedsValue, current
from specverify.intercept.run import PROCESS, RUNS, Block

# As they are

# Attributes and methods

_modified = ctypes.pythonapi.PyType_Modified
_modified.argtypes = [ctypes.py_object]
_modified.restype = None


@cache
def own_methods(kind: type) -> dict[str, Any]:
    """Return the dictionary that stores the attributes of the type ``kind``: changing it changes the type."""
    (result,) = gc.get_referents(kind.__dict__)
    if not isinstance(result, dict) or result.keys() != vars(kind).keys():
        raise RuntimeError(f"the methods of {kind.__name__} cannot be reached in this Python")
    return result


@contextmanager
def methods_replaced(kind: type, values: Mapping[str, Any]) -> Iterator[None]:
    """Context manager: while it is open, the type ``kind`` has the methods ``values`` (name -> function).

    Only names that the type itself defines may be replaced. At the end the original methods are restored.
    """
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
    """Return ``block`` changed so that nested uses install its patch only once.

    ``block()`` returns a context manager that installs a patch. The result does the same, but while one of its context
    managers is open, it returns one that does nothing.
    """
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
    """Context manager: while it is open, attributes of ``target``, a module or a class, have other values.

    ``values`` maps the names of these attributes to the values. At the end the original values are restored.
    """
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
    """Set the attributes ``values`` of ``target``, a module or class.

    The attributes of a module are set in one step, which is faster: every run does this twice.
    """
    if isinstance(target, ModuleType):
        vars(target).update(values)
        return
    for name, value in values.items():
        setattr(target, name, value)


# Calls of float

Found = TypeVar("Found")

_NAME = "{} of what may be a random number"
"""Template for a global name that source code cannot contain."""
TYPES: dict[Any, str] = {float: _NAME.format("float")} | {
    kind: _NAME.format(kind.__name__) for kind in (np.float16, np.float32, np.float64, np.longdouble)
}
"""Type whose calls are redirected -> the global name to which they are redirected."""
_MOST_NAMES = 128
"""Limit of names of a code object: an instruction of two bytes cannot address more."""


class _Module(NamedTuple):
    """A module that has applied ``float`` to a symbolic number, with the patched code of its functions.

    ``names`` is the dictionary of its global names.
    """

    names: dict[str, Any]
    functions: tuple[tuple[ReferenceType[FunctionType], CodeType, CodeType], ...]
    """Functions that call ``float``: (weak reference, original code, redirected code)."""
    of_c: tuple[tuple[str, Any], ...]
    """Pairs (global name, function written in C)."""


_MOST_ALIKE = 8
"""Number of functions with equal code that are patched. A function defined anew in every run would otherwise be patched
without end."""


def again(run: Callable[[], Found]) -> Found:
    """Call ``run`` repeatedly, until a call finds no further use of ``float`` on symbolic numbers; return its result.

    Each call redirects the uses of ``float`` that earlier calls found (see ``met``), so that they accept symbolic
    numbers. Only an exception of the last call is raised.
    """
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
    """Note that the running foreign code has just applied ``float`` or a similar call to a symbolic number.

    From the next run on, such calls in its module are redirected, so that they accept symbolic numbers.
    """
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
    with frozen_seen():
        functions = [item for item in gc.get_objects() if type(item) is FunctionType and item.__globals__ is names]
    redirected = [
        (ref(item), item.__code__, _redirect_float_calls(item.__code__, names))
        for item in functions
        if id(item) not in known
    ]
    more = tuple(entry for entry in redirected if entry[1] is not entry[2])
    of_c = tuple((name, item) for name, item in names.items() if type(item) is BuiltinFunctionType)
    PROCESS.float_modules[id(names)] = _Module(names, before.functions + more, before.of_c or of_c)


@contextmanager
def calls_led(answers: Mapping[Any, Callable[..., Any]], functions: Mapping[Any, Any]) -> Iterator[None]:
    """Context manager: while it is open, calls of floating types in the modules that ``met`` has noted are redirected.

    ``answers`` maps a floating type, such as ``float``, to the function that is called in its place. ``functions`` maps
    original functions, such as ``math.log``, to the substitutes to which global names of the modules are bound.
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
    """Redirect the calls of floating types in ``module``, and bind its global names to substitutes of functions.

    ``functions`` maps originals, such as ``math.log``, to substitutes. With ``back``, the original code and functions
    are restored instead. Code and names that other code has changed meanwhile are left unchanged.
    """
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


def _redirect_float_calls(code: CodeType, names: Mapping[str, Any]) -> CodeType:
    """Return ``code`` with its calls of floating types, such as ``float(x)``, turned into calls of other global names.

    ``TYPES`` has the new name for each type. ``names`` are the globals of ``code`` (name -> object), which show the
    type that a name in ``code`` stands for. The result is ``code`` itself if it has no such calls. Calls are left
    unchanged where the new names would give a code object more than ``_MOST_NAMES`` names.
    """
    constants = tuple(
        _redirect_float_calls(item, names) if isinstance(item, CodeType) else item for item in code.co_consts
    )
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
"""Instructions whose argument has a flag bit besides the index of the name; the bit means that the loaded object is
called."""


def _calls(code: CodeType, names: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """Yield (offset, new name) for each instruction in ``code`` that loads a floating type in order to call it.

    ``names`` are the globals of the code. The type is a global itself, such as ``float``, or an attribute of NumPy,
    such as ``np.float32``.
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
    """Return whether the instruction ``item`` marks the value that it loads as the function of a call."""
    return item.opname == "LOAD_METHOD" or bool(item.opname in _FLAGGED and item.arg and item.arg & 1)


# Threads

_STARTS = tuple(name for name in ("_start_new_thread", "_start_joinable_thread") if hasattr(threading, name))
_POOLS = "concurrent.futures.thread"


@contextmanager
def threads_enter(block: Block, enter: Callable[[], AbstractContextManager[Any]]) -> Iterator[None]:
    """Context manager: threads that are started while it is open, and tasks of thread pools, run inside ``enter()``.

    ``enter()`` returns a context manager. ``block`` is the open interception block. It records each refusal (the error
    raised for an operation on symbolic numbers that is not supported) also if it is raised in these threads.
    """
    block.enter = enter
    with threads_replaced(), _pools_replaced() if _POOLS in sys.modules else nullcontext():
        yield


def _is_abandoned(block: Block) -> bool:
    """Return whether errors in threads of ``block`` should be ignored, because nothing depends on the threads any more.

    This is so if the run of the interception block is over, or if an operation was refused.
    """
    return block.over or bool(block.refusals)


def _unless_abandoned(block: Block, hook: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls ``hook``, an exception hook of threads, unless the error no longer matters.

    An error no longer matters if the run of ``block`` is over, or if a refusal was raised in the run and the error is
    not a refusal itself.
    """

    def invoke(thread: threading.Thread) -> None:
        if not _is_abandoned(block) or (not block.over and isinstance(sys.exc_info()[1], NeedsValue)):
            hook(thread)

    return invoke


def _inside(function: Callable[..., Any], *, pooled: bool = False) -> Callable[..., Any]:
    """Return a function that calls ``function`` in another thread, inside the interception block that is open now.

    Without an open block, the result is ``function`` itself. An exception is dropped if the run is over or a refusal
    was raised. With ``pooled``, which marks a task of a thread pool, it is always raised: the pool passes it on.
    """
    block = current()
    if block is None:
        return function
    context = copy_context()
    thread = getattr(function, "__self__", None)
    if isinstance(thread, threading.Thread) and hasattr(thread, "_invoke_excepthook"):
        thread._invoke_excepthook = _unless_abandoned(block, thread._invoke_excepthook)  # noqa: SLF001

    def run(*args: Any, **kwargs: Any) -> Any:
        if block.over or RUNS.thread.block is block:
            return function(*args, **kwargs)
        before, RUNS.thread.block = RUNS.thread.block, block
        try:
            with block.enter():
                return context.copy().run(function, *args, **kwargs)
        except Exception:
            if not pooled and _is_abandoned(block):  # nobody waits for it, and it would be printed
                return None
            raise
        finally:
            RUNS.thread.block = before

    return run


def _starting(start: Callable[..., Any]) -> Callable[..., Any]:
    return lambda function, *args, **kwargs: start(_inside(function), *args, **kwargs)


@once
@contextmanager
def threads_replaced() -> Iterator[None]:
    """Context manager: new threads run inside the open interception block.

    If interception refuses an operation of such a thread, the block records the error, and ``threading`` prints no
    traceback.
    """

    def excepthook(args: Any, hook: Any = threading.excepthook) -> None:
        block = current()
        if block is None or type(args.exc_value).__module__.partition(".")[0] != __name__.partition(".")[0]:
            hook(args)
        elif not any(args.exc_value is refusal for refusal in block.refusals):
            block.refusals.append(args.exc_value)

    starts = {name: _starting(getattr(threading, name)) for name in _STARTS}
    with (
        replaced(threading, starts | {"excepthook": excepthook}),
        replaced(_thread, {"start_new_thread": _starting(_thread.start_new_thread)}),
        _pools_replaced() if _POOLS in sys.modules else nullcontext(),
    ):
        yield


@once
@contextmanager
def _pools_replaced() -> Iterator[None]:
    """Context manager: tasks of thread pools enter the open interception block, also in threads that are older than it.

    It is separate from ``threads_replaced``, because the module of thread pools may be loaded after the other patches.
    """
    pool = sys.modules[_POOLS].ThreadPoolExecutor
    with replaced(pool, {"submit": _submitting(pool.submit)}):
        yield


def _submitting(submit: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, function, /, *args, **kwargs: submit(self, _inside(function, pooled=True), *args, **kwargs)
