"""The draws of one run from JAX: random bits by key, and uniform numbers made of the bits.

**Keys.** A key is a number that JAX computes: seeds, splits and folds run unchanged. Bits made of one key are one draw,
wherever the key is used; bits of different keys are independent. In the threefry generator, JAX's default, an element
depends on the key and its position alone, whatever the shape. In other generators, and with
``jax_threefry_partitionable`` off, it also depends on the shape, in a way that is not modelled; then a key used for two
shapes is refused.

**Bits.** JAX makes a uniform number from the leading bits of a random word: it places them after the exponent of 1,
reads the result as a float and subtracts 1. The bits fill all digits of a float32 or float64. Other uses of a word are
its remainder by a number, as in ``randint``, and the word itself as an integer, which is handled like a seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.extend.core.primitives import random_bits_p

from specverify.intercept.audit import Draw, Raced
from specverify.intercept.caller import caller, draw_line
from specverify.intercept.cpython import generator_states
from specverify.intercept.cpython.patches import empty
from specverify.intercept.distributions import Forced, boundary_of
from specverify.intercept.jax.arrays import key_data
from specverify.intercept.recorded_numbers import Item
from specverify.intercept.refusals import Declined, NeedsValue
from specverify.intercept.run import PROCESS, mode
from specverify.intercept.streams import Streams
from specverify.intercept.symbolic.continuous import MOST_OUTCOMES, Continuous, force_integer, whole_number
from specverify.intercept.symbolic.deferred import Categorical, Deferred
from specverify.intercept.symbolic.large import check_numbers
from specverify.intercept.symbolic.steps import plus, times
from specverify.intercept.symbolic.uniform import Uniform
from specverify.laws import rounding
from specverify.reference import Draws, Site

# Bits


FEW = 11
"""A uniform of at most this many bits has so few values that its discreteness changes the law."""
_DIGITS: Mapping[int, int] = {32: 23, 64: 52}
"""Width of a random word -> the number of its leading bits of which ``jax.random.uniform`` makes a float."""


class Source:
    """One random word (an integer of fixed width); all numbers computed from it refer to this object."""

    def __init__(self, draws: Draws, site: Site, width: int, draw: Callable[[Hashable], Draw], word: int = 0) -> None:
        """Create a random word of ``width`` bits, drawn at ``site``; ``draws`` chooses the results of its comparisons.

        ``draw(way)`` returns the ``Draw`` that records one use of the word: ``("uniform", width)`` for its leading
        bits, ``("rest", number, width)`` for its remainder by ``number``. ``word`` is its value if the run repeats a
        plain run; else it is not used.
        """
        self.draws, self.site, self.width, self._draw, self._word = draws, site, width, draw, word
        self.uniform = Uniform(draws, site, draw(("uniform", width)))
        """The word divided by the number of words, a uniform number."""

    def rest(self, number: int) -> Deferred:
        """Return the word modulo ``number``, far smaller than the number of possible words, as an outcome.

        A later comparison of the word's uniform number is refused, because the remainder depends on its last bits.
        """
        pmf = np.full(number, 1.0 / number)
        self.uniform.known.raced = Raced(caller(), 0.0)
        coupled = mode().coupled
        if coupled is not None:
            coupled.push([Item(outcome=self._word % number)])
        return Categorical(self.draws, pmf, (*self.site, "rest"), draw=self._draw(("rest", number, self.width)))


class Bits(Deferred):
    """The leading bits of a random word as a symbolic integer, which is drawn when the program reads it."""

    def __init__(self, source: Source, kept: int, under: int = 0) -> None:
        """Represent the first ``kept`` bits of the word ``source`` as the low bits of an integer.

        ``under`` has the bits above them, such as the exponent of a float; it is 0 by default.
        """
        self.source, self.kept, self.under = source, kept, under
        super().__init__(lambda: under + force_integer(whole_number(source.uniform, 0, 2**kept)))

    def shifted(self, by: int) -> Any:
        """Return the bits shifted right by ``by``: the last ``by`` bits are dropped.

        Returns ``Declined`` in two cases: no bit would be left, or other bits were placed above these bits before.
        """
        return (
            Bits(self.source, self.kept - by)
            if not self.under and 0 <= by < self.kept
            else Declined(f"random bits are shifted by {by}")
        )

    def placed_under(self, number: int) -> Any:
        """Return the bitwise or of these bits and ``number``, such as the bits of an exponent.

        Returns ``Declined`` if a bit of ``number`` is not higher than these bits, or if bits were placed above them
        before.
        """
        free = not self.under and number >= 0 and number % 2**self.kept == 0
        return (
            Bits(self.source, self.kept, number)
            if free
            else Declined("random bits are joined with bits in the same places")
        )

    def masked(self, mask: int) -> Any:
        """Return the last n bits, for a ``mask`` of 2**n - 1: the integer modulo 2**n, see ``rest``.

        Returns ``Declined`` in two cases: ``mask`` has another form, or other bits were placed above these bits before.
        """
        whole = not self.under and (mask + 1) & mask == 0 and mask > 0
        return self.rest(mask + 1) if whole else Declined(f"random bits are masked by {mask}, which is not 2**n - 1")

    def rest(self, number: int) -> Any:
        """Return the integer modulo ``number`` as an outcome; 0 if ``number`` is 1.

        If ``number`` exceeds ``MOST_OUTCOMES``, the remainders are not enumerated: ``force_integer`` gives a value when
        the outcome is read. Raises ``NeedsValue`` if these are not all bits of the word, if bits were placed above
        them, or if ``number`` is not positive.
        """
        if self.under or self.kept != self.source.width or number <= 0:
            raise NeedsValue("rest-needed", f"the rest of a division of random bits by {number} is needed")
        if number > MOST_OUTCOMES:  # a seed, or too many to be followed
            return Deferred(lambda: force_integer(whole_number(self.source.uniform, 0, number)))
        return self.source.rest(number) if number > 1 else 0

    def converted(self, dtype: Any) -> Any:
        """Return the integer converted to ``dtype``, an integer, float or bool dtype; it stays symbolic."""
        kind = np.dtype(dtype)
        if kind.kind == "u" and kind.itemsize * 8 >= self.kept:
            return self
        if kind.kind in "iu":
            return Deferred(lambda: int(np.asarray(self.value()).astype(kind)))
        if kind == np.bool_:
            return Deferred(lambda: int(self.value() != 0))
        if self.kept <= FEW:
            return whole_number(self.source.uniform, 0, 2**self.kept).then(plus(float(self.under)))
        return Continuous(self.source.uniform).then(times(2.0**self.kept)).then(plus(float(self.under)))

    def as_float(self, dtype: Any) -> Any:
        """Return the float of type ``dtype`` in [1, 2) with these bits.

        Returns ``Declined`` unless the bits fill the significand and the exponent is that of 1.
        """
        info = jax.numpy.finfo(dtype)
        one = int(np.asarray(1.0, dtype).view(f"uint{info.bits}"))
        if self.kept != info.nmant or self.under != one:
            return Declined("random bits are read as a float that is not between 1 and 2")
        uniform = self.source.uniform
        if self.kept > FEW:
            return Continuous(uniform).then(plus(1.0))
        rounding.saw(dtype)
        return whole_number(uniform, 0, 2**self.kept).then(times(2.0**-self.kept)).then(plus(1.0))


# Keys


MOST = 100_000
"""Limit of numbers drawn by one call; each is an object."""
_KEYS = 8
"""Number of keys that the same call gets in different runs."""
WAY_OUT = "split the key, and draw once from each part"


def _key_of(seed: int) -> Any:
    """Return ``jax.random.PRNGKey(seed)``; it is made once for each setting of JAX."""
    config = jax.config
    settings = config.jax_default_prng_impl, config.jax_enable_custom_prng, config.jax_default_device
    result = PROCESS.jax.keys.get((seed, settings))
    if result is None or result.is_deleted() or config.jax_debug_key_reuse:
        result = PROCESS.jax.keys[seed, settings] = jax.random.PRNGKey(seed)
    return result


class _KeyStreams(Streams):
    """The states from which one run drew numbers: each is a tuple of the number of the run, a key and a position."""

    def told_apart(self, state: Any) -> Any:
        """Return the part of ``state`` that identifies a draw when runs are compared: all but the number of the run."""
        return state and state[0][1:]


class JaxDraws:
    """Chooses the results of all random calls of JAX in one run."""

    def __init__(self, draws: Draws, forced: Forced) -> None:
        """Make ``draws`` choose the results of random calls.

        ``forced`` gives uniforms fixed values (see ``boundary_of``); with None they are symbolic.
        """
        self.draws, self.boundary = draws, boundary_of(forced)
        self._streams = _KeyStreams()
        self._shapes: dict[Hashable, tuple[Any, str]] = {}
        self._world = generator_states.start()
        self._given = 0

    def key(self) -> Any:
        """Return a new key for a call of the program, different in every call and from that of the preceding run.

        The keys of different runs are taken from ``_KEYS``, so that what JAX computes of them can be cached. If the run
        repeats a recorded run without interception, it gets the keys of that run instead.
        """
        coupled = mode().coupled
        if coupled is not None:
            return coupled.key()
        self._given += 1
        return _key_of(self._world % _KEYS * 1_000_003 + self._given)

    def bits(self, keys: Any, call: str, width: int, shape: tuple[int, ...]) -> Any:
        """Return the random bits of ``keys`` as an array: symbolic elements, or plain numbers if values are fixed.

        Each key gives words of ``width`` bits in the given ``shape``, so the array has the shape of ``keys`` followed
        by ``shape``. ``call`` is the name of the drawing function.
        """
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
        kind, data, place = str(keys.dtype), np.asarray(key_data(keys)), draw_line()
        by_place = kind == "key<fry>" and jax.config.jax_threefry_partitionable
        coupled, word = mode().coupled, 0
        words = None
        if coupled is not None:
            coupled.by_keys = True
            words = np.asarray(random_bits_p.bind(keys, bit_width=width, shape=shape))
        result = empty((*keys.shape, *shape), dtype=object)
        for own in np.ndindex(keys.shape):
            key = (kind, data[own].tobytes())
            if not by_place:
                self._in_one_shape(key, (width, shape), f"{call} at {place}")
            for flat, index in enumerate(np.ndindex(shape)):
                state = (self._world, key, flat) if by_place else (self._world, key, shape, flat)
                site = (call, place, *own, *index)
                if words is not None:
                    word = int(words[(*own, *index)])
                    coupled.push([Item(word / 2**width, (word + 1) / 2**width)])
                result[(*own, *index)] = Bits(self._source(site, state, width, word), width)
        return result

    def _in_one_shape(self, key: Hashable, shape: Any, where: str) -> None:
        before = self._shapes.setdefault(key, (shape, where))
        if before[0] != shape:
            raise NeedsValue(
                "one-state-twice",
                f"one key is drawn from in two shapes, by {before[1]} and by {where}: how these hang together is not "
                f"followed; {WAY_OUT}, or set jax_threefry_partitionable",
            )

    def _source(self, site: Site, state: Hashable, width: int, word: int) -> Source:
        return Source(self.draws, site, width, partial(self._draw, site, state), word)

    def _draw(self, site: Site, state: Hashable, way: Hashable) -> Draw:
        return self._streams.draw(site, (state, 0), way)

    def _forced(self, call: str, width: int, shape: tuple[int, ...], count: int) -> Any:
        boundary: Any = self.boundary
        largest = 1 - 2.0 ** -_DIGITS.get(width, width)
        numbers = boundary.several(count, lambda: boundary.uniform(call, largest))
        words = [min(math.floor(u * 2.0**width), 2**width - 1) for u in numbers]
        return jax.numpy.asarray(np.array(words, dtype=f"uint{width}").reshape(shape))
