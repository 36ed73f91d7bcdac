"""States of torch's generators: from which state each draw was made, also after seeding, copying or restoring.

Before each draw the real state is read, and the real generator is advanced by a real draw. So a repeated seed,
``set_state``, ``set_rng_state``, ``fork_rng`` and two generators with one seed all return to a state that was drawn
from before. On the CPU uniforms are identified one by one: ``rand(2)`` and two ``rand(())`` after the same seed are the
same numbers, as in torch. Other draws are identified by the state before the call and their position in it.

A run begins with a state chosen here, and every generator is restored afterwards, so runs can be repeated and do not
depend on the state of the process. A generator made by the program keeps the program's changes. Devices without a
readable generator are assumed to return fresh numbers.

If a generator is not in the state in which the last intercepted draw left it, and the program did not seed or set it in
between, an operation that is not intercepted drew from it: dropout, a scripted function, a thread of C++. This is
detected at the next draw or at the end of the run, whatever the operation.

The operations that draw are those with torch's tag ``nondeterministic_seeded``. The list is read from the installed
torch, so operations of later versions are included. The list has two uses: a Python function of that name is
intercepted when it is called (``calls``), and ``drawing_operations`` reports, at the dispatcher, which of them ran.
``Recording`` records their results in a plain run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from types import CodeType, FunctionType
from typing import Any

import torch
from torch._ops import OpOverload, OpOverloadPacket
from torch.utils._python_dispatch import TorchDispatchMode

from specverify.intercept.caller import caller, draws_constant
from specverify.intercept.cpython import generator_states
from specverify.intercept.cpython.patches import methods_replaced, once, own_methods
from specverify.intercept.recorded_numbers import ROWS
from specverify.intercept.recorder import Record, Recorder
from specverify.intercept.refusals import NeedsValue, current
from specverify.intercept.run import RUNS, is_aside
from specverify.intercept.streams import CHOSEN, Streams
from specverify.intercept.symbolic.numbers import SymbolicInt
from specverify.reference import Site

# Streams

_SETS_STATE = ("manual_seed", "seed", "set_state", "set_offset", "graphsafe_set_state")


@cache
def _start(seed: int, device: torch.device) -> torch.Tensor:
    """Return the state of a global generator of ``device`` at the start of a run, computed from ``seed``.

    The seed of this state is one that a program is not likely to use.
    """
    return torch.Generator(device).manual_seed(seed << 16 | 0xF1ED).get_state()


def own_generators() -> list[torch.Generator]:
    """Return torch's default generators: that of the CPU and, if CUDA is in use, those of its devices."""
    used = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return [torch.default_generator, *(torch.cuda.default_generators if used else ())]


def _state_of(generator: torch.Generator) -> bytes:
    return _bytes(generator.get_state())


def _unanswered() -> str:
    return "an operation of torch that is not answered"


class TorchStreams(Streams):
    """The states of torch's generators from which one run has drawn."""

    def __init__(self) -> None:
        """Start without draws from any generator."""
        super().__init__()
        self._named: list[Any] = []
        self._before: dict[int, tuple[Any, torch.Tensor]] = {}
        """Identity -> a generator that was drawn from, and its state before the first draw."""
        self._left: dict[int, tuple[Any, bytes]] = {}
        """Identity -> a generator that is checked, and the state in which the last intercepted draw left it."""
        self._set: set[int] = set()
        """Identities of the generators that the program seeded or set."""
        self._of_set: set[bytes] = set()
        """States from which draws of these generators were made."""
        self._drawn: set[tuple[int, int]] = set()
        """(Identity, seed) of each generator of a CPU that was drawn from."""

    def name(self, generator: Any) -> Site:
        """Return the part of a draw's site that identifies ``generator``; () for None, the default generator.

        Generators are numbered in the order in which they first draw.
        """
        if generator is None:
            return ()
        if not any(generator is known for known in self._named):
            self._named.append(generator)
        return (f"generator {self._named.index(generator)}",)

    def state(self, generator: Any, device: torch.device, advance: Callable[[], Any]) -> bytes | None:
        """Return the state of ``generator`` before a draw, then make the draw on the real generator by ``advance()``.

        ``generator`` None stands for the default generator of ``device``.
        """
        return next(self.states(generator, device, advance, 1))

    def states(
        self, generator: Any, device: torch.device, advance: Callable[[], Any], number: int
    ) -> Iterator[bytes | None]:
        """Yield the state of ``generator`` before each of ``number`` consecutive draws.

        Each call of ``advance`` makes one draw on the real generator; all draws are made before the first state is
        yielded. ``generator`` None stands for the default generator of ``device``. A state is None if it cannot be
        read.
        """
        real = generator if generator is not None else _own(device)
        if real is None or not number:
            yield from [None] * number
            return
        state = real.get_state()
        if id(real) not in self._before:
            self._before[id(real)] = (real, state)
        result = [_bytes(state)]
        self._found(real, result[0])
        if generator is not None and real.device.type == "cpu":
            key = id(real), real.initial_seed()
            if key not in self._drawn:
                self._drawn.add(key)
                self.begin(real, ("torch", key[1]), _state_of, lambda one, other: True)
        with nobody_answers():
            for _ in range(number):
                advance()
                result.append(_bytes(real.get_state()))
        self._left[id(real)] = (real, result.pop())
        if id(real) in self._set:
            self._of_set.update(result)
        yield from result

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Context manager: torch's default generators start in a state that is chosen for this run.

        At the end every generator that was drawn from gets back the state before its first draw: for one that the
        program had seeded or set in this run, the state that it set.
        """
        seed = generator_states.start()
        for own in own_generators():
            self._before[id(own)] = (own, own.get_state())
            own.set_state(_start(seed, own.device))
            self._left[id(own)] = (own, _bytes(own.get_state()))
        block = current()
        if block is not None:
            block.looks.append(self.look)
        try:
            RUNS.torch.append(self)
            with settings_seen():
                yield
                self.look()
        finally:
            RUNS.torch.remove(self)
            for generator, state in self._before.values():
                generator.set_state(state)

    def set_by_program(self, generator: Any, change: Callable[[], Any]) -> Any:
        """Call ``change``, by which the program seeds ``generator`` or restores a state of it, and return the result.

        Nothing is drawn.
        """
        result = change()
        self._left[id(generator)] = (generator, _bytes(generator.get_state()))
        self._set.add(id(generator))
        return result

    def drawn_by_torch(self, draw: Callable[[], Any]) -> Any:
        """Call ``draw``, a call of torch that draws numbers which are constants of the program; return the result."""
        self.look()
        result = draw()
        self._left = {key: (real, _bytes(real.get_state())) for key, (real, _) in self._left.items()}
        return result

    def told_apart(self, state: Any) -> Any:
        """Return the part of a generator state that identifies a draw when runs are compared.

        It is the state itself if the program seeded or set the generator; otherwise ``CHOSEN``.
        """
        return state if not state or state[0] in self._of_set else CHOSEN

    def look(self, what: Callable[[], str] = _unanswered) -> None:
        """Raise ``NeedsValue`` if a generator is not in the state in which the last intercepted draw left it.

        Its state shows that an operation drew from it without interception; ``what()`` returns the name of the
        operation for the message.
        """
        for real, _ in list(self._left.values()):
            self._found(real, _bytes(real.get_state()), what)

    def _found(self, real: Any, state: bytes, what: Callable[[], str] = _unanswered) -> None:
        left = self._left.get(id(real))
        if left is not None and left[1] != state:
            self._left[id(real)] = (real, state)
            raise NeedsValue("unseen-draw", f"random numbers are drawn by {what()}")


def _setting(name: str) -> Callable[..., Any]:
    """Return a replacement of the method ``name`` of ``torch.Generator`` that records that the program sets a state."""
    real = own_methods(torch.Generator)[name]

    def method(generator: Any, *args: Any, **kwargs: Any) -> Any:
        numbers = (int(arg) if isinstance(arg, SymbolicInt) else arg for arg in args)
        change = partial(real, generator, *numbers, **kwargs)
        return RUNS.torch[-1].set_by_program(generator, change) if RUNS.torch else change()

    return method


_SETTING = {name: _setting(name) for name in _SETS_STATE}


@once
@contextmanager
def settings_seen() -> Iterator[None]:
    """Context manager: methods of ``torch.Generator`` that set a state report it to the active run, if there is one."""
    with methods_replaced(torch.Generator, _SETTING):
        yield


class _Nobody:
    def __init__(self) -> None:
        self._disabled = torch._C.DisableTorchFunction()  # noqa: SLF001 - or a block around this one would answer it

    def __enter__(self) -> None:
        RUNS.thread.advancing += 1
        self._disabled.__enter__()

    def __exit__(self, *_: object) -> None:
        self._disabled.__exit__(None, None, None)
        RUNS.thread.advancing -= 1


def nobody_answers() -> AbstractContextManager[None]:
    """Return a context manager that suspends interception, so that torch's functions draw from the real generator."""
    return _Nobody()


def advancing() -> bool:
    """Return whether interception now draws from a real generator to advance it; such draws are not intercepted."""
    return RUNS.thread.advancing > 0


def _bytes(state: torch.Tensor) -> bytes:
    return state.numpy().tobytes()


def _own(device: torch.device) -> Any:
    """Return the default generator of a device; None for a device without a readable generator."""
    if device.type == "cpu":
        return torch.default_generator
    if device.type == "cuda":
        return torch.cuda.default_generators[torch.cuda.current_device() if device.index is None else device.index]
    return None


# Operations that draw


@cache
def drawing_names() -> frozenset[str]:
    """Return the names, without overloads, of the torch operations that draw."""
    result = set()
    for full in torch._C._dispatch_get_all_op_names():  # noqa: SLF001 - there is no public list
        name, _, overload = full.partition(".")
        if name.startswith("aten::") and torch.Tag.nondeterministic_seeded in _tags(name, overload):
            result.add(name.removeprefix("aten::"))
    return frozenset(result)


def _tags(name: str, overload: str) -> Any:
    """Return torch's tags of the operation ``name`` with this ``overload``.

    They are read without loading the Python objects of the operation, which is faster.
    """
    operation = torch._C._get_operation_overload(name, overload)  # noqa: SLF001 - nothing public
    return () if operation is None else operation[2]


@cache
def drawing_functions() -> frozenset[Any]:
    """Return the Python functions of the operations that draw: of torch, tensors and ``torch.nn.functional``."""
    places = (torch, torch.Tensor, torch.nn.functional, torch._VF, torch._C._nn)  # noqa: SLF001
    result = {getattr(place, name, None) for place in places for name in drawing_names()}
    return frozenset(function for function in result if callable(function))


def draws(function: Any) -> bool:
    """Return whether ``function`` may draw.

    True for operations that draw and for their Python functions. Also true for a function written in Python, unless its
    code shows that it draws nothing (``_code_may_draw``).
    """
    if isinstance(function, (OpOverload, OpOverloadPacket)):
        return _operation_draws(function)
    return (isinstance(function, FunctionType) and _code_may_draw(function)) or function in drawing_functions()


@cache
def _code_may_draw(function: FunctionType) -> bool:
    """Return whether the code of ``function`` names an operation that draws, or gets a function as a parameter.

    The code of functions of torch that it names is examined too. For functions of other modules the result is True. If
    a draw escapes this rule, such as one by ``getattr``, the state of the generator shows it at the end of the run.
    """
    examined: set[FunctionType] = set()
    waiting = [function]
    while waiting:
        here = waiting.pop()
        if here in examined or here.__module__ == "torch.overrides":  # calls a function mode with the function itself
            continue
        examined.add(here)
        names = _names_in(here.__code__)
        if not here.__module__.startswith("torch") or not names.isdisjoint(drawing_names()) or _takes_functions(here):
            return True
        enclosed = [cell.cell_contents for cell in here.__closure__ or ()]
        if any(callable(each) and not isinstance(each, FunctionType) for each in enclosed):
            return True
        named = [here.__globals__.get(name) for name in names]
        waiting += [each for each in (*named, *enclosed) if isinstance(each, FunctionType)]
    return False


def _names_in(code: CodeType) -> set[str]:
    """Return the names of the globals and attributes that ``code`` uses, also in the functions inside it."""
    inside = [_names_in(each) for each in code.co_consts if isinstance(each, CodeType)]
    return set(code.co_names).union(*inside)


def _takes_functions(function: FunctionType) -> bool:
    return any("Callable" in str(annotation) for annotation in function.__annotations__.values())


@cache
def _operation_draws(operation: Any) -> bool:
    if isinstance(operation, OpOverload):
        return torch.Tag.nondeterministic_seeded in operation.tags
    return any(_operation_draws(getattr(operation, name)) for name in operation.overloads())


class _DrawingOperations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: list[tuple[str, str]] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: torch would otherwise load its compiler to exclude this class, which takes seconds."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags or advancing() or is_aside() or draws_constant():
            return func(*args, **kwargs)
        drawn_from = [*own_generators(), *filter(_is_generator, (*args, *kwargs.values()))]
        before = [generator.get_state() for generator in drawn_from]
        result = func(*args, **kwargs)
        if any(not generator.get_state().equal(state) for generator, state in zip(drawn_from, before, strict=True)):
            self.seen.append((str(func), caller()))
        return result


def _is_generator(value: Any) -> bool:
    return isinstance(value, torch.Generator)


@contextmanager
def drawing_operations() -> Iterator[list[tuple[str, str]]]:
    """Context manager that yields a list of the operations that draw without interception.

    Each item is (operation, file and line).
    """
    told = _DrawingOperations()
    with told:
        yield told.seen


class Recording(TorchDispatchMode):  # type: ignore[no-untyped-call]  # as torch has it
    """A torch dispatch mode that runs every operation and records those that draw.

    If the recorder has given values for the numbers of an operation (a ``Replayer``), they replace the drawn numbers.
    """

    def __init__(self, recorder: Recorder) -> None:
        """Record the results of operations that draw in ``recorder``."""
        super().__init__()  # type: ignore[no-untyped-call]  # likewise
        self._recorder = recorder

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: torch would otherwise load its compiler to exclude this class, which takes seconds."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the result of the operation ``func``, after recording it if it draws random numbers."""
        named = dict(kwargs or {})
        if torch.Tag.nondeterministic_seeded not in func.tags or draws_constant():
            return func(*args, **named)
        given, name = tuple(_kept(item) for item in args), func.overloadpacket.__name__
        before = None if ("torch", name) in ROWS else torch.get_rng_state()
        result = func(*args, **named)
        if before is not None and torch.equal(before, torch.get_rng_state()):  # attention without dropout, say
            return result
        if isinstance(result, torch.Tensor) and result.is_meta:  # it has a shape and no numbers
            return result
        record = Record("torch", name, given, named, _kept(result), caller())
        values = self._recorder.given_for(record)
        if values is not None:
            result.copy_(torch.as_tensor(values).reshape(result.shape))
            record = record._replace(result=_kept(result))
        self._recorder.keep(record)
        return result


def _kept(item: Any) -> Any:
    return item.detach().clone() if isinstance(item, torch.Tensor) else item
