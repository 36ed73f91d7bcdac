"""Read and restore the states of the generators of NumPy and ``random``, and choose start states.

The state is read at every draw, so speed matters: the Mersenne twisters of both and the PCG of NumPy are copied from
memory. The public methods take up to thirty microseconds.
"""

from __future__ import annotations

import _random
import ctypes
import random
import sys
import zlib
from collections.abc import Hashable
from functools import cache
from itertools import cycle
from typing import Any

import numpy as np

TWISTER = 624 * 4 + 4
"""Size in bytes of NumPy's Mersenne Twister state: the words and the index of the next one."""

PCG = 32
"""Size in bytes of the two 128-bit numbers of a PCG64; the first word of the generator's memory points to them."""
PCG_REST = 16
"""Size in bytes of that memory: the pointer, and the buffered half of a number if there is one."""

WORLDS = 509
"""Number of states to which a generator can be moved: more than the replays of a program, and few enough to cache."""

_STATE = {
    kind: vars(kind)["state"]
    for kind in (np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64, np.random.MT19937)
}
"""Bit generator type -> the library's ``state`` attribute. Inside a block the attribute is replaced by one that records
writes."""

_ADDRESSES = vars(np.random.BitGenerator)["ctypes"]
"""The library's ``ctypes`` attribute of bit generators, which the block replaces as well."""

_OF_NUMPY: Any = np.random.mtrand._rand._bit_generator  # noqa: SLF001 - np.random's functions draw from it
_OF_RANDOM: Any = random.seed.__self__  # type: ignore[attr-defined]
"""The global generators of ``random`` and ``numpy.random``."""

_HEAD = object.__basicsize__
"""Offset in bytes of the Mersenne Twister (index of the next word, then the words) in an object of ``random.Random``.
"""

_FIRST = 0x5BEC7E11
"""First seed of the states made here, an arbitrary number that programs are unlikely to use."""

_START = cycle(range(64))


def start() -> int:
    """Return a seed for the global generators at the start of a run; it differs from the seed of the preceding run.

    Intercepted draws do not use the generators. So if a result changes with this seed, a draw was not intercepted.
    """
    return next(_START)


def read(generator: Any) -> Hashable | None:
    """Return the state of a NumPy generator, bit generator or ``random.Random``; None if it has no readable state."""
    if isinstance(generator, random.Random):
        return None if isinstance(generator, random.SystemRandom) else _of_random(generator)
    bits = bits_of(generator)
    if bits is _OF_NUMPY:
        return _windows()[0].raw  # type: ignore[no-any-return]  # the bytes
    if type(bits) is np.random.MT19937:
        return ctypes.string_at(_memory(bits), TWISTER)
    if type(bits) in _pcgs():
        rest = ctypes.string_at(_memory(bits), PCG_REST)
        return ctypes.string_at(int.from_bytes(rest[:8], sys.byteorder), PCG) + rest[8:]
    try:
        return _frozen(_STATE[type(bits)].__get__(bits) if type(bits) in _STATE else bits.state)
    except (AttributeError, NotImplementedError, TypeError):
        return None


def write(generator: Any, state: Any) -> None:
    """Set ``generator`` to ``state``, a state that ``read`` returned."""
    if isinstance(generator, random.Random):
        if isinstance(state, bytes):
            ctypes.memmove(id(generator) + _HEAD, state, TWISTER)
        else:
            _random.Random.setstate(generator, state)
        return
    bits = bits_of(generator)
    if type(bits) is np.random.MT19937:
        ctypes.memmove(_memory(bits), state, TWISTER)
    elif type(bits) in _pcgs():
        first = int.from_bytes(ctypes.string_at(_memory(bits), 8), sys.byteorder)
        ctypes.memmove(first, state[:PCG], PCG)
        ctypes.memmove(_memory(bits) + 8, state[PCG:], PCG_REST - 8)
    else:
        _STATE[type(bits)].__set__(bits, _thawed(state))


@cache
def window_of_torch(torch: Any) -> Any:
    """Return a memory view of the state of torch's default generator: its words, and the index of the next word.

    Returns None if the memory layout is unknown. Unlike ``get_state``, reading the view takes no lock, so signal
    handlers can use it.
    """
    generator, words, head = torch.default_generator, slice(24, 24 + 8 * 624), 16
    address = getattr(generator, "_cdata", None)
    if address is None:
        return None
    of_state = generator.get_state().numpy()[words].view(np.uint64).astype(np.uint32).tobytes()
    found = ctypes.string_at(address, TWISTER).find(of_state[: TWISTER // 2])
    return None if found < head else _window(address + found - head, head + len(of_state))


class Held:
    """A generator whose state is replaced before a replay of the program and restored after it.

    Memory views make reading and writing the state fast.
    """

    __slots__ = ("_seed", "_seen", "_views", "generator")

    def __init__(self, generator: Any) -> None:
        """Wrap a ``Generator``, ``RandomState``, bit generator or ``random.Random``."""
        self.generator = generator
        self._views = _views(generator)
        self._seen, self._seed = None, 0

    def read(self) -> Any:
        """Return the generator's present state; ``write`` restores it."""
        return b"".join([view.raw for view in self._views]) if self._views else read(self.generator)

    def write(self, state: Any) -> None:
        """Set the generator to ``state``, which ``read`` returned before."""
        if not self._views:
            write(self.generator, state)
            return
        place = 0
        for view in self._views:
            size = len(view)
            view.raw = state[place : place + size]
            place += size

    def seed_after(self, state: Any, number: int) -> int:
        """Return the seed of the replacement state that the generator gets in replay number ``number``.

        The seed depends on ``state``, the generator's own state, and on ``number``, in the same way in every process.
        So generators with equal states keep equal states.
        """
        if state != self._seen:
            self._seen, self._seed = state, _digest(state)
        return (self._seed + 2654435761 * (number + 1)) % 2**32


def _views(generator: Any) -> tuple[Any, ...]:
    """Return views of the memory in which a generator stores its state; () if the layout is unknown."""
    if isinstance(generator, random.Random):
        known = _twister_is_known() and not isinstance(generator, random.SystemRandom)
        return (_window(id(generator) + _HEAD, TWISTER),) if known else ()
    bits = bits_of(generator)
    if type(bits) is np.random.MT19937:
        return (_window(_memory(bits), TWISTER),)
    if type(bits) in _pcgs():
        first = int.from_bytes(ctypes.string_at(_memory(bits), 8), sys.byteorder)
        return (_window(first, PCG), _window(_memory(bits) + 8, PCG_REST - 8))
    return ()


def _window(address: int, size: int) -> Any:
    return (ctypes.c_char * size).from_address(address)


def _digest(state: Any) -> int:
    if isinstance(state, bytes):
        return zlib.crc32(state)
    if isinstance(state[0], int):  # of ``random``, some six hundred numbers
        return hash(state)
    return zlib.crc32(repr(state).encode())


MOST_APART = 4096
"""Numbers of a stream among which two generators with one seed are searched for."""


def stream_of(generator: Any, state: Any) -> Hashable | None:
    """Return a key that ``generator``, in the state ``state``, has in common with all that may draw the same numbers.

    For a Mersenne Twister these are the words from which it draws next, which hundreds of its states have in common;
    for a PCG its seed. Returns None for other generators, which are not compared.
    """
    if isinstance(generator, random.Random):
        return _words_to_come(state[4:], state[:4]) if isinstance(state, bytes) else None
    bits = bits_of(generator)
    if type(bits) is np.random.MT19937:
        return _words_to_come(state[:-4], state[-4:])
    seeds = getattr(bits, "seed_seq", None)
    if type(bits) not in _pcgs() or not isinstance(seeds, np.random.SeedSequence):
        return None
    return type(bits), repr(seeds.entropy), seeds.spawn_key, seeds.pool_size


def _words_to_come(words: bytes, place: bytes) -> bytes:
    """Return the ``words`` of a Mersenne Twister, or the next ones if it has drawn from all; ``place`` counts them."""
    number = int.from_bytes(place, sys.byteorder)
    if number < len(words) // 4:
        return words
    twister = _random.Random()
    twister.setstate((*np.frombuffer(words, dtype=np.uint32).tolist(), number))
    twister.random()
    return np.array(twister.getstate()[:-1], dtype=np.uint32).tobytes()


def share_numbers(generator: Any, one: Any, other: Any) -> bool:
    """Return whether two generators with one ``stream_of``, in the states ``one`` and ``other``, draw the same numbers.

    ``generator`` is one of them. Streams of a PCG that were moved far apart on purpose (``jumped``) have no number in
    common, so both states must be found near the beginning of the stream.
    """
    bits = bits_of(generator)
    if type(bits) not in _pcgs():
        return True
    begun, left = type(bits)(bits.seed_seq), {one[:PCG], other[:PCG]}
    for _ in range(MOST_APART):
        left.discard(read(begun)[:PCG])  # type: ignore[index]  # the bytes of a PCG
        if not left:
            return True
        begun.advance(1)
    return False


def pending(generator: Any) -> float | None:
    """Return the normal number that a generator has cached for its next call; None if it has cached none.

    Only ``RandomState`` and ``random.Random`` cache such a number: their algorithm makes two at a time.
    """
    if isinstance(generator, random.Random):
        return getattr(generator, "gauss_next", None)  # there is none before it is seeded
    if not isinstance(generator, np.random.RandomState):
        return None
    state = _OF_LEGACY["get_state"](generator, legacy=False)
    return float(state["gauss"]) if state["has_gauss"] else None


def put_pending(generator: Any, value: float | None) -> None:
    """Set the normal number that ``generator`` has cached to ``value``, as returned by ``pending``."""
    if isinstance(generator, random.Random):
        generator.gauss_next = value  # type: ignore[attr-defined]
    elif isinstance(generator, np.random.RandomState):
        kept = {"has_gauss": value is not None, "gauss": value or 0.0}
        state = _OF_LEGACY["get_state"](generator, legacy=False) | kept
        _OF_LEGACY["set_state"](generator, state)


_OF_LEGACY: dict[str, Any] = {name: vars(np.random.RandomState)[name] for name in ("get_state", "set_state")}
"""Name -> unpatched method of ``numpy.random.RandomState``."""


def state_in_world(generator: Any, seed: int) -> Any:
    """Return a fixed start state for ``generator``: one of ``WORLDS`` states, selected by ``seed`` modulo ``WORLDS``.

    The state has the form that ``read`` returns for a generator of this type.
    """
    seed = _FIRST + seed % WORLDS
    if isinstance(generator, random.Random):
        return _moved_random(seed)
    kind: Any = type(bits_of(generator))
    if kind is np.random.MT19937:  # the same words, all of them still to come
        return _words_of_twister(seed)
    return _made(kind, seed)


def bits_of(generator: Any) -> Any:
    """Return the bit generator of a NumPy generator; any other object unchanged."""
    if isinstance(generator, np.random.RandomState):
        return generator._bit_generator  # noqa: SLF001 - it has no other name
    return getattr(generator, "bit_generator", generator)


def _memory(bits: Any) -> Any:
    return _ADDRESSES.__get__(bits).state_address


@cache
def _pcgs() -> frozenset[type]:
    """Return the PCG types, if their memory has the expected layout: two 128-bit numbers, one after the other.

    Otherwise the result is empty.
    """
    made = np.random.PCG64(1)
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return frozenset()
    first = int.from_bytes(ctypes.string_at(_memory(made), 8), sys.byteorder)
    words = ctypes.string_at(first, PCG)
    result = [int.from_bytes(words[place : place + 16], sys.byteorder) for place in (0, 16)]
    numbers = _STATE[np.random.PCG64].__get__(made)["state"]
    alike = result == [numbers["state"], numbers["inc"]]
    return frozenset({np.random.PCG64, np.random.PCG64DXSM}) if alike else frozenset()


def _of_random(generator: _random.Random) -> Hashable:
    if generator is _OF_RANDOM and _windows()[1] is not None:
        return _windows()[1].raw  # type: ignore[no-any-return]  # the bytes
    if _twister_is_known():
        return ctypes.string_at(id(generator) + _HEAD, TWISTER)
    return _random.Random.getstate(generator)


@cache
def _windows() -> tuple[Any, Any]:
    """Return memory views of the states of the global generators of NumPy and of ``random``.

    None stands for a state whose layout is unknown. The views keep the generators alive.
    """
    known = _twister_is_known()
    return _window(_memory(_OF_NUMPY), TWISTER), _window(id(_OF_RANDOM) + _HEAD, TWISTER) if known else None


@cache
def _twister_is_known() -> bool:
    """Return whether the memory of ``random.Random`` has the expected layout."""
    made = _twister(1)
    if sys.implementation.name != "cpython" or _random.Random.__basicsize__ < _HEAD + TWISTER:
        return False
    *words, place = made.getstate()
    return ctypes.string_at(id(made) + _HEAD, TWISTER) == np.array([place, *words], dtype=np.uint32).tobytes()


def _twister(seed: int) -> _random.Random:
    made = _random.Random()
    made.seed(seed)
    return made


@cache
def _moved_random(seed: int) -> Hashable:
    return _of_random(_twister(seed))


@cache
def _words_of_twister(seed: int) -> bytes:
    return np.array(_twister(seed).getstate(), dtype=np.uint32).tobytes()


@cache
def _made(kind: type, seed: int) -> Any:
    return read(kind(seed))


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
