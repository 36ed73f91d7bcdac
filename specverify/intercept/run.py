"""The state of interception: ``RUNS`` for what is open, ``PROCESS`` for facts about the process.

``RUNS`` holds the open blocks, the interpreters of each library, and the patches. Threads that existed before a block
read it, so it belongs to the process and not to a context. If no block is open, every field is empty, however the last
block ended (``left_behind``). Options of a block (an audit, large-vocabulary mode) are a ``RunMode``, which belongs to
a context, so that a thread started inside a block has the options of the block.

``PROCESS`` holds facts about this process that remain valid until the next search: where foreign code stores generators
and clocks, which of its functions need the value of a symbolic number, and cached results of libraries.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, NamedTuple


class Block:
    """The record of one run of foreign code whose random calls are intercepted."""

    def __init__(self) -> None:
        """Start a record without refusals."""
        self.over = self.suspended = False
        self.refusals: list[Exception] = []
        """Every refusal raised inside the block, whether or not it came out."""
        self.looks: list[Callable[[], None]] = []
        """Each raises a refusal if a generator was drawn from that nobody answered."""
        self.enter: Callable[[], AbstractContextManager[Any]] = nullcontext
        """What a thread that is started inside enters first."""


class InThread(threading.local):
    """The open interpreters of one thread.

    Each thread has its own, because other threads draw at the same time, and a thread may outlive the block in which it
    started.
    """

    def __init__(self) -> None:
        """Start without an open block."""
        self.block: Block | None = None
        """The block that the thread has entered."""
        self.silent: list[int] = []
        """For each block in which nobody answers, how many blocks were open around it."""
        self.advancing = 0
        """Depth of blocks in which torch moves a real generator on."""


class Runs:
    """The open blocks and patches of this process, the innermost last."""

    def __init__(self) -> None:
        """Start without open blocks and patches."""
        self.blocks: list[Block] = []
        self.patched: set[str] = set()
        """Patches that are made once, by the name of what makes them."""
        self.set_up = 0
        """Depth of set-up code, whose draws are not attributed to the program."""
        self.gifts: list[dict[str, None]] = []
        """Each grows by the numbers that are given to the foreign code as they are."""
        self.noted: list[list[Any]] = []
        """Each grows by the draws that are made, with the states they are made from."""
        self.answers: dict[str, list[Any]] = {}
        """By library, who answers its calls."""
        self.lines: list[Callable[[], str]] = []
        """What names the line while code runs that was traced before; an empty name where it does not know."""
        self.torch: list[Any] = []
        """Streams of the generators of torch."""
        self.mapped_without_draws = 0
        """Depth of ``vmap`` that allows no draws."""
        self.jax: list[Any] = []
        """Draws of JAX."""
        self.jax_functions: list[str] = []
        """Functions of JAX that are being computed, such as ``_uniform``."""
        self.thread = InThread()

    def left_behind(self) -> dict[str, Any]:
        """Return the non-empty fields by name; empty if no run is open."""
        fields = {name: value for name, value in vars(self).items() if name != "thread" and value}
        stacks = {name: stack for name, stack in fields.pop("answers", {}).items() if stack}
        inside = {name: value for name, value in vars(self.thread).items() if value}
        return fields | ({"answers": stacks} if stacks else {}) | ({"thread": inside} if inside else {})


class Process:
    """Facts about this process, valid until the next search."""

    def __init__(self) -> None:
        """Start without facts: every field is empty."""
        self.methods: dict[type, dict[str, Callable[..., Any]]] = {}
        """By type of generator, what stands for its methods inside a block. Front ends fill it in; subclasses first."""
        self.aliases: list[Any] = []
        """Places of foreign code that hold a method of a generator."""
        self.watched: list[tuple[Any, str]] = []
        """Generators that may be drawn from unseen, each with what it is called."""
        self.generators: list[Any] = []
        """All generators that can be reached, each ``generator_states.Held``."""
        self.clocks: list[tuple[Any, Any]] = []
        """Places of foreign code that hold a clock, and the clock."""
        self.modules = 0
        """How many modules there were when the clocks were looked for."""
        self.requests, self.seeded = 0, False
        """Requests that were served, and whether the caller of the last one chooses its seed."""
        self.callers: dict[str, set[str]] = {}
        """Lines that draw, and the lines that call the functions they are in."""
        self.float_modules: dict[int, Any] = {}
        """Modules whose code has asked for the value of a random number."""
        self.float_code: dict[tuple[int, int], Any] = {}
        """The code that has asked, by its identity and that of its module."""
        self.functions: tuple[tuple[Any, ...], dict[str, Any]] = (), {}
        """The functions of NumPy that were patched in the last run: in their order, and by their names."""
        self.noise: dict[Any, Any] = {}
        """By device of torch, the generator of the noise that fills the memory under symbolic tensors."""
        self.operations: dict[int, Any] = {}
        """What is known of an operation of torch, by its identity."""
        self.jax_drawing: dict[int, tuple[Any, bool]] = {}
        """Traced functions, and whether they draw; kept so that no other one gets their number."""
        self.jax_halves: dict[int, tuple[Any, frozenset[Any]]] = {}
        """Traced functions, and the floats of 16 bits in them."""
        self.jax_exact: dict[int, tuple[Any, tuple[str, ...] | None]] = {}
        """Traced functions, and the operations on floats in them; None if NumPy does not compute every operation."""
        self.jax_lines: dict[int, tuple[Any, str]] = {}
        """Equations, and the line that each was traced from."""
        self.jax_arrays: dict[Any, Any] = {}
        """By content, the array of JAX that stands for all that hold the same."""
        self.jax_ours: dict[int, Any] = {}
        """These arrays, by their identity."""
        self.jax_computed: dict[Any, Any] = {}
        """What JAX computed of known numbers."""


RUNS, PROCESS = Runs(), Process()


class _Silence:
    """The context manager of ``nobody_answers``: suspends interception in this thread.

    It is a class because a class is faster than a generator, and it is entered at every draw.
    """

    def __enter__(self) -> None:
        RUNS.thread.silent.append(len(RUNS.blocks))

    def __exit__(self, *_: object) -> None:
        RUNS.thread.silent.pop()


_SILENCE = _Silence()


def nobody_answers() -> AbstractContextManager[None]:
    """Return a context manager that suspends interception in this thread, so that library methods draw as usual."""
    return _SILENCE


def answering(library: str) -> Any:
    """Return the active interpreter of the calls of ``library``: ``Answers``, a ``Recorder``, or None."""
    answers = RUNS.answers.get(library)
    silent = RUNS.thread.silent
    return answers[-1] if answers and not (silent and silent[-1] >= len(RUNS.blocks)) else None


class RunMode(NamedTuple):
    """The options of an interception block: audit, large vocabulary, low precision, recorded values."""

    audit: Any = None
    """The audit that records reused random numbers; None for no audit."""
    made: list[Any] | None = None
    """List to which every drawn uniform is appended; None to collect none."""
    constraints: dict[Any, Any] | None = None
    """By site, the last constraint of a draw about uniforms; None to collect none."""
    large: bool = False
    """Large-vocabulary mode: draws with many outcomes stay symbolic."""
    short: bool = False
    """Whether the rows of the call are 16-bit floats."""
    coupled: Any = None
    """The replay that gives every random number the value a plain run recorded; None outside coupled runs."""


_ORDINARY = RunMode()
_MODE: ContextVar[RunMode] = ContextVar("mode", default=_ORDINARY)
mode = _MODE.get


@contextmanager
def mode_with(**changes: Any) -> Iterator[None]:
    """Context manager: the ``with`` block runs with ``changes`` to the fields of ``RunMode``."""
    token = _MODE.set(_MODE.get()._replace(**changes))
    try:
        yield
    finally:
        _MODE.reset(token)


@contextmanager
def aside() -> Iterator[None]:
    """Context manager for set-up code: draws made in the block, by any thread, are not attributed to the program."""
    RUNS.set_up += 1
    try:
        yield
    finally:
        RUNS.set_up -= 1


def is_aside() -> bool:
    """Return whether a block of ``aside`` is open, so that draws are not attributed to the program."""
    return RUNS.set_up > 0
