"""Addresses of new objects in another order, as in another process.

CPython hashes an object without ``__hash__`` by its address, so the order of a set of such objects depends on
addresses. Runs in one process often use the same memory in the same order. Here free memory is scattered first, so that
a program that depends on the order behaves differently.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any

_SIZES = range(48, 513, 16)
"""Sizes in bytes of the blocks that CPython's allocator for small objects keeps apart; the smallest two are made by
``object`` and ``complex``."""
_HEADER = 33
"""Bytes of an empty object of type ``bytes``."""
_MAKERS: tuple[Callable[[], Any], ...] = (
    object,
    partial(complex, 1.0),
    *(partial(bytes, size - _HEADER) for size in _SIZES),
)
"""Each makes an object of another size."""
_BLOCKS = 64
"""Number of blocks of each size that are taken; half of them are given back."""


@contextmanager
def addresses_moved(number: int) -> Iterator[None]:
    """Context manager: small objects that are created in the block get addresses in another order.

    ``number`` selects the order.
    """
    held = [_scattered(make, order) for make, order in zip(_MAKERS, _orders(number), strict=True)]
    yield
    del held


def _scattered(make: Callable[[], Any], order: list[int]) -> list[Any]:
    """Fill memory with objects from ``make``, and delete half of them in the given ``order``; return the others."""
    held: list[Any] = [make() for _ in range(_BLOCKS)]
    for place in order[: _BLOCKS // 2]:
        held[place] = None
    return held


@lru_cache(maxsize=256)
def _orders(number: int) -> list[list[int]]:
    generator = random.Random(number)  # noqa: S311 - an order that can be repeated
    return [generator.sample(range(_BLOCKS), _BLOCKS) for _ in _MAKERS]
