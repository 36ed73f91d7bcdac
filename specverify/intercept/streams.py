"""Follow the states of generators to detect repeated draws; produce the results of calls of ``random`` and NumPy.

**Repeated draws.** Two draws from one generator state return the same numbers. ``Streams`` records the states from
which one run drew. A second draw from a state, in the same way as the first, gets the same number or outcome. So laws
are also right for a program that restarts a stream. If both draws use one double of the stream (``Generator.choice``
with weights, ``Generator.random``), the interval in which the double lies relates them. If both race the same noise at
different weights (``torch.multinomial``), the law of the second winner given the first relates them. Any other second
draw depends on the first by the arithmetic of the library, which is not modelled: ``NeedsValue`` refuses the run as
soon as both are read.

**Requests.** A program may serve several requests. A request may begin from a state that an earlier request drew from.
If the caller of the request chooses its seed, its numbers count as independent. Otherwise the run is refused, because
one seed for all requests may be intended or a fault.

**Generators.** An ``Answers`` object handles the calls of one library during one block. Before a draw it reads the real
state of the generator, and then advances the real generator by a real draw. So a copy, a repeated seed and two
generators with one seed return to a state that was drawn from before. Generators are restored afterwards. If a global
generator, or one in ``PROCESS.watched``, is not in the state in which the last intercepted draw left it, a call that is
not intercepted drew from it. ``torch.generators`` does the same for torch.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from specverify.intercept.audit import Draw, Origin
from specverify.intercept.cpython import generator_states
from specverify.intercept.cpython.patches import asarray
from specverify.intercept.distributions import Forced, boundary_of
from specverify.intercept.refusals import NeedsValue, current
from specverify.intercept.run import PROCESS, RUNS, nobody_answers
from specverify.intercept.symbolic.continuous import Continuous, whole_number
from specverify.intercept.symbolic.deferred import Categorical
from specverify.intercept.symbolic.large import MANY, large
from specverify.intercept.symbolic.uniform import Uniform
from specverify.intercept.symbolic.vectors import NoiseBlock
from specverify.reference import Draws, Pmf, Site

# States

Noted = list[tuple[Site, Hashable]]
"""Pairs (site of a draw, generator state before it); a state of None means that another run may start from the same
state."""
BEGINS_AGAIN = (
    "begins from the seed of an earlier request: if each request is to have its own seed, give the call an argument "
    "with seed in its name; otherwise seed once"
)


CHOSEN = "chosen by interception"
"""Stands for all generator states that interception chooses for a run, because the program does not set them."""


@contextmanager
def states_noted() -> Iterator[Noted]:
    """Context manager that yields a list, to which every draw in the block appends its (site, generator state).

    The state is ``CHOSEN`` if interception chose it for the run, and None if it is not known.
    """
    noted: Noted = []
    RUNS.noted.append(noted)
    try:
        yield noted
    finally:
        RUNS.noted.remove(noted)


def begin_request(*, seeded: bool) -> None:
    """Mark the start of another request to the program, so that draws of different requests are told apart.

    ``seeded`` states whether the caller of the request chooses its seed. If so, a draw from a generator state that an
    earlier request used counts as independent, because another seed could have been chosen. If not, such a draw is
    refused.
    """
    PROCESS.requests, PROCESS.seeded = PROCESS.requests + 1, seeded


class Streams:
    """The generator states from which one run has drawn, with the draws from each."""

    def __init__(self) -> None:
        """Start without draws."""
        self._origins: dict[Hashable, tuple[int, Origin]] = {}
        """State -> the number of the last request that drew from it, and its draws."""
        self._begun: dict[Hashable, tuple[Any, Any]] = {}
        """Stream -> the first generator that drew from it, and its state before that."""

    def draw(
        self, site: Site, state: Hashable | None, way: Hashable, source: Hashable | None = None, *, races: bool = False
    ) -> Draw:
        """Return the draw at ``site`` from the generator state ``state`` (None: one that never occurs again).

        ``way`` is the drawing function with its weights: draws with equal state and way have the same value. Some
        functions compute their outcome from the number that another function returns directly, as ``choice`` does from
        that of ``random``. Then ``source`` is the way of this other function. If it is the winner of a race, ``races``
        is True and ``source`` identifies the noise. Raises ``NeedsValue`` if an earlier request drew from the same
        state, and the caller does not choose the seed.
        """
        self.note(site, state)
        if state is None:
            return Draw(site, None, way)
        request, origin = self._origins.get(state) or (PROCESS.requests, Origin(state))
        if request != PROCESS.requests:
            if not PROCESS.seeded:
                raise NeedsValue("seed-of-another-request", f"{site[0]} at {site[1]} {BEGINS_AGAIN}")
            origin = Origin(state)
        self._origins[state] = (PROCESS.requests, origin)
        return Draw(site, origin, way, source, races=races)

    def note(self, site: Site, state: Hashable | None) -> None:
        """Append the draw at ``site`` from the generator state ``state`` to each open ``states_noted``."""
        for noted in RUNS.noted:
            noted.append((site, self.told_apart(state)))

    @contextmanager
    def noting(self, site: Site, state: Hashable | None) -> Iterator[None]:
        """Context manager that notes the draw at ``site`` from generator state ``state`` if the block refuses it."""
        try:
            yield
        except NeedsValue:
            self.note(site, state)
            raise

    def begin(
        self,
        generator: Any,
        stream: Hashable | None,
        read: Callable[[Any], Any],
        share_numbers: Callable[[Any, Any], bool],
        operation: str = "",
        place: str = "",
    ) -> None:
        """Refuse a generator that draws the same numbers as another one of the run, earlier or later.

        Equal states are followed exactly: those of two generators with one seed, or of a copy. Two generators at
        different places of one stream would count as independent. Called at the first draw of each generator.

        Args:
            generator: The generator.
            stream: A key that it has in common with generators that may draw the same numbers; None: it has none.
            read: Returns the state of a generator.
            share_numbers: Returns whether generators of this stream in two states draw the same numbers.
            operation: The call that draws; "" if the caller adds it.
            place: Its file and line.

        Raises:
            NeedsValue: Another generator draws the same numbers at another place.
        """
        if stream is None:
            return
        state = read(generator)
        first, begun = self._begun.setdefault(stream, (generator, state))
        if first is generator or state in {begun, read(first)} or any(_has(key, state) for key in self._origins):
            return
        if share_numbers(begun, state):
            said = "two generators that began from one seed draw the same numbers, one of them later than the other"
            raise NeedsValue("shifted-stream", said, operation, place)

    def told_apart(self, state: Hashable | None) -> Hashable | None:
        """Return the part of a generator state that identifies a draw when runs are compared: here the whole state.

        Subclasses override this method. They leave out the parts of a state that interception chose for the run.
        """
        return state


def _has(key: Hashable, state: Any) -> bool:
    """Return whether ``key``, a state or a tuple of a state and the place of a number, has this ``state``."""
    return key == state or (isinstance(key, tuple) and any(_has(part, state) for part in key))


# Answers

_BY_IDENTITY = frozenset({random.Random, np.random.MT19937, np.random.PCG64})
"""Generator types without value equality: two generators are equal only if identical."""
NEXT_DOUBLE = ("uniform", "float64")
"""Way of drawing the next double of a NumPy generator."""
_ONE_DOUBLE = {"choices", "rand", "random", "random_sample", "uniform"}
"""Functions that return the next double of the stream unchanged."""


class Answers:
    """Produces the results of the intercepted calls of one library during one block, for all its generators."""

    def __init__(self, draws: Draws, forced: Forced, owner: Any, name: str) -> None:
        """Start without draws; ``draws`` chooses the results of the calls of one library.

        ``forced`` gives uniforms fixed values (None: they are symbolic). ``owner`` is the library's global generator,
        and ``name`` the name of this generator in sites.
        """
        self.draws, self.boundary = draws, boundary_of(forced)
        self._streams = Streams()
        self._owner = owner
        self._own_name = name
        self._names: dict[int, tuple[Any, str]] = {}
        self._before: dict[Hashable, tuple[Any, Any]] = {}
        """Key of a stream -> a generator whose state was changed, and its state before the run."""
        self._pending: dict[Hashable, tuple[Any, float | None]] = {}
        """Key of a stream -> a generator that caches normal numbers, and the number that was cached before the run."""
        self._left: dict[Hashable, tuple[Any, Any]] = {}
        """Key of a stream -> a generator that is checked, and the state in which the last intercepted draw left it."""
        self._left[_stream(owner)] = (owner, generator_states.read(owner))
        self._drawn: set[Hashable] = set()
        """Keys of the streams from which the run has drawn."""
        self._forced: dict[Hashable, bool] = {}
        """(Number of the request, generator state) -> whether the number drawn from it has a forced value."""
        for generator, _ in PROCESS.watched:
            if _of_numpy(generator) == _of_numpy(owner):
                self._left[_stream(generator)] = (generator, generator_states.read(generator))

    def name(self, generator: Any, otherwise: str) -> str:
        """Return the name of a generator in sites and messages.

        ``otherwise`` is returned for a generator without a name (see ``call_it``).
        """
        if generator is self._owner:
            return self._own_name
        return self._names.get(id(generator), (generator, otherwise))[1]

    def call_it(self, generator: Any, name: str) -> None:
        """Store ``name`` as the name of ``generator``, for sites and messages."""
        if generator is self._owner:
            self._own_name = name
        else:
            self._names[id(generator)] = (generator, name)

    def open_call(
        self, generator: Any, site: Site, function: str, advance: Callable[[], Any], *, in_pairs: bool = False
    ) -> AnsweredCall:
        """Advance the real generator by calling ``advance``; return an object that draws for a call of ``function``.

        ``site`` names the call. ``in_pairs`` states that the function may return a number that the generator cached in
        the preceding call.
        """
        stream = self._keep(generator)
        pending = self._kept_number(generator) if in_pairs else None
        state = generator_states.read(generator)
        if state is not None and generator is not self._owner and stream not in self._drawn:
            self._drawn.add(stream)
            kind, shared = generator_states.stream_of(generator, state), generator_states.share_numbers
            read = generator_states.read
            self._streams.begin(generator, kind, read, partial(shared, generator), str(site[0]), str(site[1]))
        try:
            with nobody_answers():
                advance()
            done = True
        except Exception:  # noqa: BLE001 - of arguments that only answered calls take: it stays as it was
            done = False
        if state is not None:
            self._left[stream] = (generator, after := generator_states.read(generator))
            if done and after == state:  # nothing was drawn of what is certain: the state is that of the next call
                state = None
        self._check_not_mixed(state, forced=False)
        if pending is not None:
            state = "kept", pending
        return AnsweredCall(self._streams, self.draws, state and (type(generator).__name__, state), site, function)

    def force(self, generator: Any, advance: Callable[[], Any], count: int) -> None:
        """Advance the real generator by ``count`` doubles, which numbers at an extreme value replace in this run.

        ``advance`` advances it by one double. Does nothing if numbers are not fixed, if the run has a list of values
        for them (``Boundary``), or for very many doubles. Raises ``NeedsValue`` if an outcome was drawn from one of
        these doubles before, because the outcome could contradict the extreme value.
        """
        if self.boundary is None or self.boundary.has_values or large(count, MANY):
            return
        stream = self._keep(generator)
        for _ in range(count):
            self._check_not_mixed(generator_states.read(generator), forced=True)
            with nobody_answers():
                advance()
        self._left[stream] = (generator, generator_states.read(generator))

    def _check_not_mixed(self, state: Any, *, forced: bool) -> None:
        """Raise ``NeedsValue`` if this request draws twice from ``state``, once with a fixed value and once without.

        ``forced`` states whether the number that is drawn now has a fixed value (see ``Boundary``).
        """
        if self.boundary is None or self.boundary.has_values or state is None:
            return
        if self._forced.setdefault((PROCESS.requests, state), forced) is not forced:
            raise NeedsValue("one-state-twice", "an outcome and a number are drawn from one state of a generator")

    def set_by_program(self, generator: Any, change: Callable[[], Any]) -> Any:
        """Call ``change``, by which the program seeds ``generator`` or restores a state of it, and return the result.

        Nothing is drawn.
        """
        stream = self._keep(generator)
        self._kept_number(generator)
        with nobody_answers():
            result = change()
        self._left[stream] = (generator, generator_states.read(generator))
        return result

    def check(self) -> None:
        """Raise ``NeedsValue`` if a generator is not in the state in which the last intercepted draw left it.

        Another state shows a draw that was not intercepted.
        """
        for generator, state in self._left.values():
            if generator_states.read(generator) != state:
                known = next((name for other, name in PROCESS.watched if other is generator), "")
                called = known or self.name(generator, type(generator).__name__)
                raise NeedsValue("unseen-draw", f"random numbers are drawn from {called} by a call that is not seen")

    def restore(self, *, checked: bool) -> None:
        """Restore the state that every generator had before the run.

        ``checked`` states that ``check`` found every draw and every seeding intercepted, so that only generators that
        the run drew from or set need to be restored.
        """
        moved = self._before if checked else {**self._left, **self._before}
        for generator, state in moved.values():
            if state is not None and generator_states.read(generator) != state:
                generator_states.write(generator, state)
        for generator, number in self._pending.values():
            generator_states.put_pending(generator, number)

    def _keep(self, generator: Any) -> Hashable:
        """Return the key of the stream of a generator; the first time, store its state, so that it can be restored.

        The global generator then also gets a start state that is chosen for the run.
        """
        stream = _stream(generator)
        if stream not in self._before:
            self._before[stream] = (generator, generator_states.read(generator))
            if generator is self._owner:
                generator_states.write(generator, generator_states.state_in_world(generator, generator_states.start()))
        return stream

    def _kept_number(self, generator: Any) -> float | None:
        """Return the normal number that ``generator`` has cached for its next call, or None.

        The first call in a run stores this number for ``restore``. It also deletes the number of the global generator,
        so that a run does not depend on earlier draws.
        """
        if _stream(generator) not in self._pending:
            self._pending[_stream(generator)] = (generator, generator_states.pending(generator))
            if generator is self._owner:
                generator_states.put_pending(generator, None)
        return generator_states.pending(generator)


def _stream(generator: Any) -> Hashable:
    """Return the key of the stream of a generator; NumPy generators that share a bit generator have one stream.

    The key is the object itself if its type compares by identity, because each call of ``id`` raises an audit event.
    """
    source = generator if isinstance(generator, random.Random) else generator_states.bits_of(generator)
    return source if type(source) in _BY_IDENTITY else id(source)


def _of_numpy(generator: Any) -> bool:
    return isinstance(generator, (np.random.Generator, np.random.RandomState))


class AnsweredCall:
    """One intercepted call of a generator; its methods return the outcomes and symbolic numbers that the call draws."""

    def __init__(self, streams: Streams, draws: Draws, state: Hashable | None, site: Site, function: str) -> None:
        """Store the call of ``function`` at ``site``; ``draws`` chooses its outcomes.

        ``streams`` has the earlier draws of the run. ``state`` is the state of the generator before the call; None if
        no other draw can have the same state.
        """
        self._streams, self._draws, self._state, self._function = streams, draws, state, function
        self._places = count()
        self.site = site

    def noting(self, site: Site) -> AbstractContextManager[None]:
        """Return a context manager that notes the call as the draw at ``site`` if its block refuses it."""
        return self._streams.noting(site, self._state and (self._state, 0))

    def uniform(self, site: Site, digits: str = "double") -> Uniform:
        """Return the next uniform number of the call.

        ``site`` names the number; ``digits`` is the name of its dtype, such as "float32".
        """
        way = ("uniform", digits if self._function in _ONE_DOUBLE else self._function)
        return Uniform(self._draws, site, self._draw(site, way))

    def block(self, site: Site, shape: tuple[int, ...], digits: str) -> NoiseBlock:
        """Return one noise vector that stands for all uniform numbers of the call.

        ``site`` names the vector, ``shape`` is the shape of the array that the call returns, and ``digits`` is the name
        of its dtype, such as "float32".
        """
        draw = self._draw(site, ("many", self._function, shape, digits))
        return NoiseBlock(self._draws, site, draw, math.prod(shape))

    def whole(self, site: Site, low: int, number: int) -> Continuous:
        """Return a symbolic integer in ``[low, low + number)``, for a call with too many values to enumerate.

        ``site`` names the integer.
        """
        return whole_number(
            Uniform(self._draws, site, self._draw(site, ("whole", self._function, number))), low, number
        )

    def categorical(self, pmf: Pmf, site: Site, source: Hashable | None = None) -> int:
        """Return the next outcome of the call, drawn now from ``pmf``.

        ``site`` and ``source`` are as in ``outcome``.
        """
        outcome: int = self.outcome(pmf, site, source).value()
        return outcome

    def outcome(self, pmf: Pmf, site: Site, source: Hashable | None = None) -> Categorical:
        """Return the next outcome of the call, from ``pmf``, as a symbolic outcome that is drawn when it is read.

        ``site`` names the decision. If the library computes the outcome from one number, by a look-up in the cumulative
        sum of ``pmf``, ``source`` names the way of drawing this number, such as ``NEXT_DOUBLE``; otherwise it is None.
        """
        draw = self._draw(site, (self._function, asarray(pmf).tobytes()), source)
        return Categorical(self._draws, pmf, site, draw=draw)

    def _draw(self, site: Site, way: Hashable, source: Hashable | None = None) -> Draw:
        place = next(self._places)
        return self._streams.draw(site, self._state and (self._state, place), way, source)


class AnswersOf:
    """Context manager in which ``answers`` handles the random calls of a library.

    At its end the generators are checked and restored. It is a class because a class is faster than a generator
    function, and every run enters the block.
    """

    __slots__ = ("_answers", "_library")

    def __init__(self, library: str, answers: Answers) -> None:
        """Prepare to let ``answers`` handle the random calls of ``library``."""
        self._library, self._answers = library, answers

    def __enter__(self) -> Answers:
        RUNS.answers.setdefault(self._library, []).append(self._answers)
        block = current()
        if block is not None:
            block.looks.append(self._answers.check)
        return self._answers

    def __exit__(self, kind: object, *_: object) -> None:
        checked = False
        try:
            if kind is None:
                self._answers.check()
                checked = True
        finally:
            RUNS.answers[self._library].remove(self._answers)
            with nobody_answers():
                self._answers.restore(checked=checked)
