"""Many random numbers at once: what ``continuous`` is for one number, in arrays.

``Many`` is an array of numbers and random numbers. The random ones are monotone functions of uniform numbers that have
no value, each of its own: one chain of steps for all of them, whose numbers are arrays. An element can always be taken
out, as the ``Continuous`` or the number that it is, so what is not known here is done element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from specverify.intercept.audit import Draw, Raced
from specverify.intercept.refusals import RuleDeclined
from specverify.intercept.unknowns.continuous import Continuous
from specverify.intercept.unknowns.many_steps import Steps, chained, grows, of
from specverify.intercept.unknowns.steps import MonotoneStep, pushed
from specverify.intercept.unknowns.uniform import Known, NeedsValue, Uniform, look
from specverify.reference import Draws, Site

_FIRST = count()


# The uniform numbers


class NoiseBlock:
    """The uniform numbers that one call draws."""

    def __init__(self, draws: Draws, site: Site, draw: Draw, size: int) -> None:
        """``draw`` says which state of a generator they are drawn from; ``size`` is how many there are."""
        self.draws, self.site, self.draw, self.size = draws, site, draw, size
        self.known: _KnownOfBlock = draw.shared(lambda: _KnownOfBlock(size))

    def uniform(self, place: int) -> Uniform:
        """Return one of them."""
        site = (*self.site, place)
        return Uniform(self.draws, site, _Place(site, self, place))


class _KnownOfBlock:
    """What is known of the numbers of a block, in all draws that gave it."""

    def __init__(self, size: int) -> None:
        self.first = next(_FIRST) << 40
        """What the ids of its numbers begin with."""
        self.raced = np.zeros(size, dtype=bool)
        self.single: dict[int, Known] = {}
        """Of those that were taken out."""


class _Place(Draw):
    """The draw of one number of a block."""

    __slots__ = ("block", "number")

    def __init__(self, site: Site, block: NoiseBlock, number: int) -> None:
        super().__init__(site)
        self.block, self.number = block, number

    def shared(self, make: Callable[[], Any]) -> Any:
        known = self.block.known
        if self.number not in known.single:
            known.single[self.number] = make()
            if known.raced[self.number]:
                known.single[self.number].raced = Raced("", 0.0)
        return known.single[self.number]

    def look(self) -> str:
        return self.block.draw.look()


# The numbers


class Many(NamedTuple):
    """``steps`` of uniform numbers, applied in order, and then clamped; or numbers."""

    blocks: tuple[NoiseBlock, ...]
    ids: Any
    """Which uniform number each element is made of; -1 for a number."""
    numbers: Any
    """The elements that are numbers."""
    steps: tuple[Steps, ...] = ()
    """Their numbers are floats, or arrays like ``ids``."""
    low: Any = -np.inf
    high: Any = np.inf

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return tuple(self.ids.shape)

    @property
    def random(self) -> Any:
        """Which elements are random numbers."""
        return self.ids >= 0

    def then(self, step: Steps) -> Many:
        """Return the array with one more step of its random numbers. The numbers are left as they are."""
        steps = chained(self.steps, step)
        for each in steps:
            size = np.abs(each.number)
            if each.name in {"times", "power"} and not np.all((size > 0) & (size < np.inf) | ~self.random):
                raise NeedsValue("out-of-range", f"random numbers leave the range of floats ({step.name})")
        with np.errstate(all="ignore"):
            ends = of(step, self.low), of(step, self.high)
        return self._replace(steps=steps, low=ends[0] if grows(step) else ends[1], high=ends[1 if grows(step) else 0])

    def ends(self) -> tuple[Any, Any]:
        """Return the infima and the suprema of the values that the random numbers can have."""
        low, high = np.float64(0.0), np.float64(1.0)
        with np.errstate(all="ignore"):
            for step in self.steps:
                low, high = (of(step, low), of(step, high)) if grows(step) else (of(step, high), of(step, low))
            return np.minimum(np.maximum(low, self.low), self.high), np.maximum(np.minimum(high, self.high), self.low)

    def taken(self, take: Callable[[Any], Any]) -> Many:
        """Return what ``take`` selects of every array that it is made of."""

        def of_number(number: Any) -> Any:
            return take(np.broadcast_to(number, self.shape)) if np.ndim(number) else number

        steps = tuple(step._replace(number=of_number(step.number)) for step in self.steps)
        ids, numbers = take(self.ids), take(self.numbers)
        return Many(self.blocks, ids, numbers, steps, of_number(self.low), of_number(self.high))

    def few(self, places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return a few of the elements as they are, counted in order."""
        found = np.empty(places.shape, dtype=object)
        for index, place in np.ndenumerate(places):
            found[index] = self.element(int(place))
        return found

    def element(self, place: int) -> Any:
        """Return one element, counted in order: a number or a ``Continuous``."""
        found = int(self.ids.flat[place])
        if found < 0:
            return float(self.numbers.flat[place])
        block = next(each for each in self.blocks if 0 <= found - each.known.first < each.size)

        def at(number: Any) -> float:
            return float(np.broadcast_to(number, self.shape).flat[place]) if np.ndim(number) else float(number)

        steps: tuple[MonotoneStep, ...] = ()
        for step in self.steps:
            steps = pushed(steps, MonotoneStep(step.name, at(step.number)))
        return Continuous(block.uniform(found - block.known.first), steps, at(self.low), at(self.high))

    def elements(self) -> Any:
        """Return all elements as an object array."""
        found = np.empty(self.ids.size, dtype=object)
        found[:] = [self.element(place) for place in range(self.ids.size)]
        return found.reshape(self.shape)

    def look(self) -> None:
        """Say that all of them are looked at, and refuse those that hang together with other draws."""
        for block in self.blocks:
            look(block.draw)


def uniforms(block: NoiseBlock, shape: tuple[int, ...]) -> Many:
    """Return the numbers of a block as an array."""
    ids = block.known.first + np.arange(block.size, dtype=np.int64).reshape(shape)
    return Many((block,), ids, np.zeros(shape))


def as_many(values: Any) -> Many:
    """Return an array of numbers."""
    found = np.asarray(values, dtype=np.float64)
    return Many((), np.full(found.shape, -1, dtype=np.int64), found)


def numbers(values: Any, like: Many) -> Many:
    """Return an array of numbers that goes together with ``like``: with the chain of its first random number."""
    first = int(like.random.argmax()) if like.ids.size else 0

    def of_first(number: Any) -> Any:
        return np.broadcast_to(number, like.shape).flat[first] if np.ndim(number) else number

    steps = tuple(step._replace(number=of_first(step.number)) for step in like.steps)
    return as_many(values)._replace(steps=steps, low=of_first(like.low), high=of_first(like.high))


def joined(parts: Sequence[Any], join: Callable[[list[Any]], Any]) -> Many:
    """Return what ``join`` makes of arrays, ``Many`` or numbers. Raises ``RuleDeclined`` for different chains."""
    like = next((part for part in parts if isinstance(part, Many) and part.random.any()), as_many(0.0))
    names = [step.name for step in like.steps]
    whole = [
        part
        if isinstance(part, Many) and part.random.any()
        else numbers(part.numbers if isinstance(part, Many) else part, like)
        for part in parts
    ]
    if any([step.name for step in part.steps] != names for part in whole):
        raise RuleDeclined("noise vectors with different chains of steps are put together")

    def together(found: list[Any]) -> Any:
        if all(np.ndim(each) == 0 for each in found) and len(set(map(float, found))) == 1:
            return found[0]
        return join([np.broadcast_to(each, part.shape) for each, part in zip(found, whole, strict=True)])

    return Many(
        tuple(dict.fromkeys(block for part in whole for block in part.blocks)),
        join([part.ids for part in whole]),
        join([part.numbers for part in whole]),
        tuple(Steps(name, together([part.steps[at].number for part in whole])) for at, name in enumerate(names)),
        together([part.low for part in whole]),
        together([part.high for part in whole]),
    )
