"""Everything that might draw unseen, moved: a replay in another state of the world.

Every generator that can be reached is put into another state (those that are alike stay alike), the clocks show another
time and the operating system gives other bytes. A program whose draws are all answered does the same as before.
"""

from __future__ import annotations

import random
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from specverify.intercept import aliases, generator_states, outside
from specverify.intercept.run import PROCESS


def look_around() -> None:
    """Find the generators, bound names, clocks and devices that are there now. Tenths of a second if much is loaded."""
    outside.watch_outside()
    PROCESS.generators.clear()  # so that those that nobody else holds any more are not found again
    aliases.forget()
    everything = aliases.Everything()
    if PROCESS.modules != len(sys.modules):
        outside.find_sources(everything)
        PROCESS.modules = len(sys.modules)
    aliases.find_aliases(everything)
    found = [item for item in everything.of(*aliases.GENERATORS) if not isinstance(item, random.SystemRandom)]
    of_bits = {id(generator_states.bits_of(item)): item for item in found}  # several may share them
    PROCESS.generators[:] = of_bits.values()


@contextmanager
def moved(number: int) -> Iterator[None]:
    """Run the block in the world that is called ``number``; afterwards every generator is as it was."""
    before = [(generator, state) for generator in PROCESS.generators if (state := generator_states.read(generator))]
    for generator, state in before:
        generator_states.write(generator, generator_states.state_in_world(generator, _seed_after(state, number)))
    try:
        with outside.elsewhen(number):
            yield
    finally:
        for generator, state in before:
            generator_states.write(generator, state)


def _seed_after(state: Any, number: int) -> int:
    """Return a seed for a state, the same one in every process: hashes of numbers are, those of bytes are not."""
    if isinstance(state, bytes):
        found = zlib.crc32(state)
    elif isinstance(state[0], int):  # of ``random``, some six hundred numbers
        found = hash(state)
    else:
        found = zlib.crc32(repr(state).encode())
    return (found + 2654435761 * (number + 1)) % 2**32
