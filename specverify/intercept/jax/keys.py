"""What one run draws from JAX: random bits by the keys that they are made of.

A key is a number that JAX computes: seeds, splits and folds are done as they are, by JAX. Bits that are made of one key
are one draw, whoever holds the key; of different keys they are independent. In the threefry generator that JAX has by
default each element hangs on the key and on its place alone, whatever the shape. In other generators, and with
``jax_threefry_partitionable`` off, it hangs on the shape as well, in a way that is not followed: there a key that is
drawn from in two shapes is refused.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from functools import partial
from typing import Any

import jax
import numpy as np
from numpy import empty  # by name: inside a block NumPy has another

from specverify.intercept import generator_states
from specverify.intercept.audit import Draw
from specverify.intercept.boundary import Forced, boundary_of
from specverify.intercept.caller import caller
from specverify.intercept.jax.bits import Bits, Source
from specverify.intercept.streams import Streams
from specverify.intercept.unknowns.sizes import check_numbers
from specverify.intercept.unknowns.uniform import NeedsValue
from specverify.reference import Draws, Site

MOST = 100_000
"""Numbers of one call; each is an object."""
WAY_OUT = "split the key, and draw once from each part"


class _Streams(Streams):
    """The keys that were drawn from; who is given a number as it is gets another one in every run."""

    def told_apart(self, state: Any) -> Any:
        """Return the key without the run."""
        return state and state[0][1:]


class JaxDraws:
    """Answers the draws of one run."""

    def __init__(self, draws: Draws, forced: Forced) -> None:
        """``forced`` gives uniforms their values, if anything does."""
        self.draws, self.boundary = draws, boundary_of(forced)
        self._streams = _Streams()
        self._shapes: dict[Hashable, tuple[Any, str]] = {}
        self._world = generator_states.start()
        self._given = 0

    def key(self) -> Any:
        """Return a key for a call that takes one: another one each time, and in every run."""
        self._given += 1
        return jax.random.PRNGKey(self._world * 1_000_003 + self._given)

    def bits(self, keys: Any, call: str, width: int, shape: tuple[int, ...]) -> Any:
        """Return the random bits that ``keys`` give, as elements; numbers where a value is forced."""
        count = math.prod((*keys.shape, *shape))
        if self.boundary is not None:
            check_numbers(call, count)
            return self._forced(call, width, (*keys.shape, *shape), count)
        if count > MOST:
            raise NeedsValue(
                "too-many-numbers",
                f"{call} at {caller()} draws {count} random numbers, and no more than {MOST} are followed of JAX: "
                "examine it at a smaller vocabulary",
            )
        kind, data, place = str(keys.dtype), np.asarray(jax.random.key_data(keys)), caller()
        by_place = kind == "key<fry>" and jax.config.jax_threefry_partitionable
        found = empty((*keys.shape, *shape), dtype=object)
        for own in np.ndindex(keys.shape):
            key = (kind, data[own].tobytes())
            if not by_place:
                self._in_one_shape(key, (width, shape), f"{call} at {place}")
            for flat, index in enumerate(np.ndindex(shape)):
                state = (self._world, key, flat) if by_place else (self._world, key, shape, flat)
                site = (call, place, *own, *index)
                found[(*own, *index)] = Bits(self._source(site, state, width), width)
        return found

    def _in_one_shape(self, key: Hashable, shape: Any, where: str) -> None:
        before = self._shapes.setdefault(key, (shape, where))
        if before[0] != shape:
            raise NeedsValue(
                "one-state-twice",
                f"one key is drawn from in two shapes, by {before[1]} and by {where}: how these hang together is not "
                f"followed; {WAY_OUT}, or set jax_threefry_partitionable",
            )

    def _source(self, site: Site, state: Hashable, width: int) -> Source:
        return Source(self.draws, site, width, partial(self._draw, site, state))

    def _draw(self, site: Site, state: Hashable, way: Hashable) -> Draw:
        return self._streams.draw(site, (state, 0), way)

    def _forced(self, call: str, width: int, shape: tuple[int, ...], count: int) -> Any:
        boundary: Any = self.boundary
        largest = 1 - 2.0 ** -min(width, 53)
        numbers = boundary.several(count, lambda: boundary.uniform(call, largest))
        words = [min(math.floor(u * 2.0**width), 2**width - 1) for u in numbers]
        return jax.numpy.asarray(np.array(words, dtype=f"uint{width}").reshape(shape))
