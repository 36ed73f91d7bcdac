"""The state of interception: ``RUNS`` for what is open, ``PROCESS`` for facts about the process.

A block is a ``with`` block in which random calls are intercepted. ``RUNS`` holds the open blocks, the source of draws
for each library, and the patches. It belongs to the process and not to a context, because threads that existed before a
block must see it too. If no block is open, every field is empty, however the last block ended (``left_behind``).
Options of a block (an audit, large-vocabulary mode) are a ``RunMode``, which belongs to a context, so that a thread
started inside a block has the options of the block.

``PROCESS`` holds facts about this process that remain valid until the next search: where foreign code stores generators
and clocks, which of its functions apply ``float`` to symbolic numbers, and cached results of libraries.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary


class Block:
    """The record of one run of foreign code whose random calls are intercepted."""

    def __init__(self) -> None:
        """Start the record of an interception block (a ``with`` block in which random calls are intercepted).

        There are no refusals yet.
        """
        self.over = self.suspended = False
        self.refusals: list[Exception] = []
        """Every refusal raised inside the block, also those that the foreign code caught."""
        self.looks: list[Callable[[], None]] = []
        """Functions that each raise a refusal if a generator was used for a draw that was not intercepted."""
        self.enter: Callable[[], AbstractContextManager[Any]] = nullcontext
        """Returns the context manager that a thread started in the block enters first."""

    def end(self) -> None:
        """Mark the run as over, and drop what answered its calls: these objects refer to the block themselves.

        Without this cycle the memory of a run, such as the pmfs of its draws, is free as soon as the run ends.
        """
        self.over, self.looks, self.enter = True, [], nullcontext


class InThread(threading.local):
    """The state of interception in one thread: the block that it has entered, and whether interception is suspended."""

    def __init__(self) -> None:
        """Start outside of any interception block."""
        self.block: Block | None = None
        """The block that the thread has entered."""
        self.silent: list[int] = []
        """For each open ``nobody_answers``, how many blocks were open around it."""
        self.advancing = 0
        """Number of nested ``with`` blocks in which a real generator of torch is advanced."""


class Runs:
    """The interception blocks that are open in this process, and the patches that are applied.

    A list among the fields ends with the entry of the innermost block.
    """

    def __init__(self) -> None:
        """Start with no open interception block and no applied patch."""
        self.blocks: list[Block] = []
        self.patched: set[str] = set()
        """Names of the context managers of ``patches.once`` that are entered."""
        self.set_up = 0
        """Number of nested blocks of ``aside``: set-up code, whose draws are not attributed to the program."""
        self.gifts: list[dict[str, None]] = []
        """For each open ``gifts_kept``, descriptions of the plain random numbers that the foreign code received."""
        self.noted: list[list[Any]] = []
        """For each open ``states_noted``, the sites of the draws made so far and the generator states before them."""
        self.answers: dict[str, list[Any]] = {}
        """Name of a library -> the interpreters that answer its calls."""
        self.lines: list[Callable[[], str]] = []
        """Functions that return the line of foreign code while code that was traced earlier runs; "" if unknown."""
        self.torch: list[Any] = []
        """Streams of the generators of torch."""
        self.mapped_without_draws = 0
        """Number of nested calls of ``vmap`` that allow no draws."""
        self.jax: list[Any] = []
        """Draws of JAX."""
        self.jax_functions: list[str] = []
        """Functions of JAX that are being computed, such as ``_uniform``."""
        self.thread = InThread()

    def left_behind(self) -> dict[str, Any]:
        """Return the fields that are not empty, by name.

        When no interception block is open, there should be none: the last block should have removed all entries.
        """
        fields = {name: value for name, value in vars(self).items() if name != "thread" and value}
        stacks = {name: stack for name, stack in fields.pop("answers", {}).items() if stack}
        inside = {name: value for name, value in vars(self.thread).items() if value}
        return fields | ({"answers": stacks} if stacks else {}) | ({"thread": inside} if inside else {})


class JaxCaches:
    """Caches of results that JAX computed; all runs of the process share the caches."""

    def __init__(self) -> None:
        """Start with every cache empty."""
        self.drawing: dict[int, tuple[Any, bool]] = {}
        """Identity -> a traced function, and whether it draws. Keeping the function keeps its identity unique."""
        self.halves: dict[int, tuple[Any, frozenset[Any]]] = {}
        """Identity -> a traced function, and the 16-bit floating values in it."""
        self.exact: dict[int, tuple[Any, tuple[str, ...] | None]] = {}
        """Identity -> a traced function, and its operations on floats; None if NumPy does not compute them all."""
        self.lines: dict[int, tuple[Any, str]] = {}
        """Identity -> an equation of a traced function, and the line from which it was traced."""
        self.arrays: dict[Any, Any] = {}
        """Content -> the one array of JAX that stands for all arrays with this content."""
        self.ours: dict[int, Any] = {}
        """Identity -> each array of ``arrays``."""
        self.computed: dict[Any, Any] = {}
        """Computation on known numbers -> the result of JAX."""
        self.indexed: dict[Any, Any] = {}
        """Concrete array and index -> the array of the elements there."""
        self.whole: dict[Any, tuple[Any, float]] = {}
        """Function of JAX and its known arguments -> its result, and the coarsest spacing of the floats in it."""
        self.clearings = 0
        """How often the caches that contain identities of arrays were cleared."""
        self.constants: dict[Any, Any] = {}
        """Content of an array of NumPy -> the array of JAX with this content."""
        self.places: dict[Any, tuple[Any, list[Any]]] = {}
        """Operation that moves elements -> its equation, and the places from which the elements of its results come."""
        self.keys: dict[Any, Any] = {}
        """(Seed, settings of JAX) -> the key with this seed."""
        self.first_of: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        """Traced function -> the first with the same content; None if it is the first."""
        self.by_content: dict[Any, Any] = {}
        """Content -> the first traced function with this content."""
        self.known_parts: dict[Any, Any] = {}
        """Traced function and the content of its known arguments -> the part that depends only on them."""


class Process:
    """Data about this process, such as its random generators, which remain valid until it is searched again."""

    def __init__(self) -> None:
        """Start with every field empty; searches of the process and the front ends fill them."""
        self.methods: dict[type, dict[str, Callable[..., Any]]] = {}
        """Type of generator -> replacements of its methods inside a block. Front ends fill it in, subclasses first."""
        self.aliases: list[Any] = []
        """Places of foreign code that hold a method of a generator."""
        self.watched: list[tuple[Any, str]] = []
        """Generators from which foreign code may draw by a method bound earlier, each with the name of the method."""
        self.generators: list[Any] = []
        """All generators that can be reached, each ``generator_states.Held``."""
        self.clocks: list[tuple[Any, Any]] = []
        """Places of foreign code that hold a clock, and the clock."""
        self.keeps_out = False
        """Whether searches leave out frozen objects, as in the tests of specverify; what engines freeze is searched."""
        self.requests, self.seeded = 0, False
        """Number of requests served, and whether the caller of the last one chooses its seed."""
        self.constant_lines: frozenset[str] = frozenset()
        """Lines of the subject whose draws are constants (``checks.constant_draws``): the library draws there."""
        self.callers: dict[str, set[str]] = {}
        """Line that draws -> the lines that call the function in which it is."""
        self.float_modules: dict[int, Any] = {}
        """Modules whose code has asked for the value of a random number."""
        self.float_code: dict[tuple[int, int], Any] = {}
        """(Identity of code, identity of its module's globals) -> code that has needed the value of a random number."""
        self.functions: tuple[tuple[Any, ...], dict[str, Any]] = (), {}
        """The functions of NumPy that were patched in the last run: a tuple in order, and a dictionary by name."""
        self.noise: dict[Any, Any] = {}
        """Device of torch -> the generator of the noise that fills the memory under symbolic tensors."""
        self.operations: dict[int, Any] = {}
        """Identity of an operation of torch -> what is known of the operation."""
        self.jax = JaxCaches()
        """What was computed of programs of JAX."""


RUNS, PROCESS = Runs(), Process()


class _Silence:
    """The context manager of ``nobody_answers``: in its block, random calls of this thread are not intercepted.

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
    """Return the object that now handles the intercepted calls of ``library``: an ``Answers`` or a ``Recorder``.

    Returns None in two cases: no open block intercepts ``library``, or interception is suspended in this thread.
    """
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
    """Site -> the last constraint on uniforms that a draw there set; None to collect none."""
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
    """Context manager: in the ``with`` block the fields of ``RunMode`` named in ``changes`` have the given values."""
    token = _MODE.set(_MODE.get()._replace(**changes))
    try:
        yield
    finally:
        _MODE.reset(token)


@contextmanager
def aside() -> Iterator[None]:
    """Context manager for set-up code: draws made in the block, by any thread, do not count as draws of the program."""
    RUNS.set_up += 1
    try:
        yield
    finally:
        RUNS.set_up -= 1


def is_aside() -> bool:
    """Return whether a block of ``aside`` (set-up code) is open, so that draws do not count as draws of the program."""
    return RUNS.set_up > 0
