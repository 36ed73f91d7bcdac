"""Record the random numbers of a plain run, in which the libraries draw their own numbers.

A ``Recorder`` is used in place of a source of draws: each drawing call of ``random`` and NumPy calls the library's
method, and the recorder stores the arguments and the result; nothing else changes. ``torch.generators`` records torch.
JAX needs no record: its numbers are a function of keys, and the keys given to the program are stored. The rules for
symbolic numbers are not used here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from specverify.intercept.caller import caller
from specverify.intercept.run import RUNS, nobody_answers
from specverify.reference import Draws, Pmf, Site

LIBRARIES = ("random", "numpy")
PASSED_THROUGH = frozenset({"choices"})
"""Library functions in Python that are not recorded; the draws that they call are."""
NOT_DRAWING = frozenset({"seed", "setstate", "getstate", "set_state", "get_state", "spawn"})
IN_PLACES = frozenset({"sample", "shuffle", "permutation", "permuted", "choice"})
"""Calls that select from a population; the record holds the selected indices."""


class Record(NamedTuple):
    """One random call of a plain run, in which the libraries draw their own numbers.

    ``name`` is the function of ``library``; ``args`` and ``kwargs`` are its positional and keyword arguments,
    ``result`` is what it returned, and ``place`` the program line of the call.
    """

    library: str
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any
    place: str
    """File and line of the call."""

    def __str__(self) -> str:
        """Return the name of the call and its line."""
        return f"{self.library}.{self.name} at {self.place}"


class Recorder:
    """Records the random numbers that a program draws from the libraries.

    For draws that the program itself makes, by calling ``draws``, the source of draws ``named`` is used.
    """

    boundary = None

    def __init__(self, named: Draws) -> None:
        """Start without records. ``named`` chooses the outcomes if a decoder calls ``draws.categorical`` itself."""
        self._named = named
        self.records: list[Record] = []
        self.keys: list[Any] = []
        """Keys of JAX that were made for calls."""

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return the outcome of a draw from ``pmf`` that a decoder makes by calling ``draws.categorical`` itself.

        ``named``, another source of draws, chooses it; ``site`` names the decision.
        """
        with nobody_answers():
            return self._named.categorical(pmf, site)

    def call(self, library: str, name: str, real: Callable[..., Any], generator: Any, given: Any, named: Any) -> Any:
        """Call the library method ``real``, record the call, and return its result.

        ``library`` and ``name`` name the method, ``generator`` is its object, ``given`` and ``named`` are its
        positional and keyword arguments. Not recorded: methods that draw nothing, and methods that draw by calling
        others, whose calls are recorded. If ``given_for`` returns values, they replace the drawn numbers.
        """
        if name in NOT_DRAWING or name in PASSED_THROUGH:
            return real(generator, *given, **named)
        place = caller()
        arguments_before = tuple(map(_kept, given)), {key: _kept(item) for key, item in named.items()}

        def draw(drawing: Any, *arguments: Any, **options: Any) -> Any:
            result = real(drawing, *arguments, **options)
            drawn = arguments[0] if name == "shuffle" else result
            record = Record(library, name, *arguments_before, copy(drawn), place)
            values = self.given_for(record)
            if values is not None:
                drawn = _filled(drawn, values)
                record = record._replace(result=copy(drawn))
            self.keep(record)
            return None if name == "shuffle" else drawn

        with nobody_answers():
            if name in IN_PLACES:
                return _in_places(name, draw, generator, given, named)[1]
            return draw(generator, *given, **named)

    def given_for(self, _record: Record) -> Any:
        """Return None: the drawn numbers of a recorded call are not replaced.

        ``Replayer`` overrides this method to return the values that replace them.
        """
        return None

    def keep(self, record: Record) -> None:
        """Append ``record`` to the list ``records``."""
        self.records.append(record)

    def name(self, _generator: Any, otherwise: str) -> str:
        """Return ``otherwise``: a recorder needs no names of generators.

        The class ``Answers`` has the same methods; there, ``name`` and ``call_it`` find and store names for messages.
        """
        return otherwise

    def call_it(self, _generator: Any, _name: str) -> None:
        """Do nothing: a recorder needs no names of generators."""

    def set_by_program(self, _generator: Any, change: Callable[[], Any]) -> Any:
        """Call ``change``, by which the program sets the state of a generator, and return its result.

        Nothing is recorded.
        """
        return change()

    def key(self) -> Any:
        """Make a JAX key for the next call of the program, append it to ``keys``, and return it."""
        with nobody_answers():
            seed = int(np.random.randint(2**31))  # noqa: NPY002 - it is what ``seeded`` seeds
        self.keys.append(sys.modules["jax"].random.PRNGKey(seed))
        return self.keys[-1]


def _kept(argument: Any) -> Any:
    """Return ``argument`` of a drawing call; a copy if it is an array or a list, which the program may overwrite."""
    if isinstance(argument, list):
        return copy(argument)
    return np.array(argument) if getattr(argument, "ndim", 0) else argument


def _filled(result: Any, values: Any) -> Any:
    """Return ``values`` in the shape and type of ``result``, the result of a drawing call.

    If ``result`` is an array, the values are written into it.
    """
    if isinstance(result, np.ndarray):
        result[...] = np.reshape(values, result.shape)
        return result
    listed = values if isinstance(values, list) else np.ravel(values).tolist()
    return listed if isinstance(result, list) else type(result)(listed[0])


def _in_places(name: str, real: Callable[..., Any], generator: Any, given: Any, named: Any) -> tuple[Any, Any]:
    """Apply a method that selects from a population, such as ``choice``, to indices 0, 1, ... instead of the elements.

    So the record has the drawn positions. ``name`` is the method; ``real`` draws on ``generator``. ``given`` and
    ``named`` are the positional and keyword arguments of the program. Returns the drawn indices, and the result that
    the library would have returned.
    """
    first, *rest = given
    several = not isinstance(first, int | np.integer) and np.ndim(first) != 0
    if name == "permuted":
        axis = rest[0] if rest else named.get("axis")
        whole = np.asarray(first)
        flat = whole.ravel() if axis is None else np.moveaxis(whole, axis, -1)
        order = np.broadcast_to(np.arange(flat.shape[-1]), flat.shape)
        places = real(generator, order, axis=-1)
        taken = np.take_along_axis(flat, places, -1)
        taken = taken.reshape(whole.shape) if axis is None else np.moveaxis(taken, -1, axis)
        out = rest[1] if len(rest) > 1 else named.get("out")
        if out is not None:
            out[...] = taken
        return places, taken if out is None else out
    if name == "shuffle":
        axis = rest[0] if rest else named.get("axis", 0)
        number = first.shape[axis] if isinstance(first, np.ndarray) else len(first)
        order = np.arange(number)
        real(generator, order)
        first[:] = np.take(first, order, axis) if isinstance(first, np.ndarray) else [first[place] for place in order]
        return order, None
    if name == "sample":
        counts = named.get("counts")
        population = [item for item, n in zip(first, counts, strict=True) for _ in range(n)] if counts else first
        k = rest[0] if rest else named["k"]
        places = real(generator, range(len(population)), k)
        return places, [population[place] for place in places]
    axis = named.get("axis", 0) if name == "choice" else (rest[0] if rest else named.get("axis", 0))
    number = np.shape(first)[axis] if several else int(first)
    if name == "permutation":
        places = real(generator, number)
    else:
        places = real(generator, number, *rest, **{key: item for key, item in named.items() if key != "axis"})
    return places, np.take(np.asarray(first), places, axis) if several else places


@contextmanager
def records_in(recorder: Recorder) -> Iterator[None]:
    """Record the calls of ``random`` and NumPy, and the keys of JAX, in ``recorder`` while the ``with`` block runs."""
    for library in LIBRARIES:
        RUNS.answers.setdefault(library, []).append(recorder)
    RUNS.jax.append(recorder)
    try:
        yield
    finally:
        RUNS.jax.remove(recorder)
        for library in LIBRARIES:
            RUNS.answers[library].remove(recorder)
