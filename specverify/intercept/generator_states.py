"""States of the generators of NumPy and ``random``: read, put back, and the ones a program is started with.

Read at every draw, so the way matters: the Mersenne Twister of NumPy is copied from its memory (its ``state`` takes
thirty microseconds), that of ``random`` by the method written in C.
"""

from __future__ import annotations

import _random
import ctypes
import random
from collections.abc import Hashable
from functools import lru_cache
from itertools import cycle
from typing import Any

import numpy as np

TWISTER = 624 * 4 + 4
"""Bytes of a Mersenne Twister in NumPy: its words and the place of the next one."""

_STATE = {
    kind: vars(kind)["state"]
    for kind in (np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64, np.random.MT19937)
}
"""The state as the library gives it: inside a block the attribute is another, which tells of who sets it."""

_ADDRESSES = vars(np.random.BitGenerator)["ctypes"]
"""Likewise."""

_START = cycle(range(0x5BEC7E11, 0x5BEC7E11 + 64))


def start() -> int:
    """Return a seed that the global generators are taken to have when a run begins, another one in every run.

    What depends on it draws where nobody sees it. Nobody else would choose such a seed.
    """
    return next(_START)


def read(generator: Any) -> Hashable | None:
    """Return the state of a ``Generator``, ``RandomState``, bit generator or ``random.Random``; None if it has none."""
    if isinstance(generator, random.Random):
        return None if isinstance(generator, random.SystemRandom) else _random.Random.getstate(generator)
    bits = bits_of(generator)
    if type(bits) is np.random.MT19937:
        return ctypes.string_at(_memory(bits), TWISTER)
    try:
        return _frozen(_STATE[type(bits)].__get__(bits) if type(bits) in _STATE else bits.state)
    except (AttributeError, NotImplementedError, TypeError):
        return None


def write(generator: Any, state: Any) -> None:
    """Put back what ``read`` returned."""
    if isinstance(generator, random.Random):
        _random.Random.setstate(generator, state)
        return
    bits = bits_of(generator)
    if type(bits) is np.random.MT19937:
        ctypes.memmove(_memory(bits), state, TWISTER)
    else:
        _STATE[type(bits)].__set__(bits, _thawed(state))


def moved(generator: Any, seed: int) -> Any:
    """Return a state for a generator of the kind of ``generator``, another one for each ``seed``."""
    twister = _seeded_twister(seed)
    if isinstance(generator, random.Random):
        return _random.Random.getstate(twister)
    bits = bits_of(generator)
    if type(bits) is np.random.MT19937:  # the same words, all of them still to come
        return np.array(_random.Random.getstate(twister), dtype=np.uint32).tobytes()
    return read(type(bits)(seed))


def bits_of(generator: Any) -> Any:
    """Return the bit generator that a generator of NumPy draws from, or itself."""
    if isinstance(generator, np.random.RandomState):
        return generator._bit_generator  # noqa: SLF001 - it has no other name
    return getattr(generator, "bit_generator", generator)


def _memory(bits: Any) -> Any:
    return _ADDRESSES.__get__(bits).state_address


@lru_cache(maxsize=256)
def _seeded_twister(seed: int) -> Any:
    made = _random.Random()
    made.seed(seed)
    return made


def _frozen(value: Any) -> Hashable:
    if isinstance(value, dict):
        return tuple((name, _frozen(item)) for name, item in value.items())
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.tobytes())
    return value  # type: ignore[no-any-return]  # numbers and names


def _thawed(state: Any) -> Any:
    if isinstance(state, tuple) and len(state) == 2 and isinstance(state[1], bytes):
        return np.frombuffer(state[1], dtype=state[0]).copy()
    if isinstance(state, tuple):
        return {name: _thawed(item) for name, item in state}
    return state
