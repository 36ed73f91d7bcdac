"""A cache for functions of two pmfs, keyed by the values of the pmfs, so that many rounds share one result."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

from .types import Pmf

Answer = TypeVar("Answer")


def by_values(function: Callable[[Pmf, Pmf, int, int], Answer]) -> Callable[[Pmf, Pmf, int, int], Answer]:
    """Return ``function(p, q, count, option)`` with its last 4096 results cached by the values of its arguments.

    p and q are 1-D arrays of any type; ``count`` and ``option`` are integers.
    """

    @lru_cache(maxsize=4096)
    def answer(p: _RowKey, q: _RowKey, count: int, option: int) -> Answer:
        return function(p.pmf, q.pmf, count, option)

    return lambda p, q, count, option: answer(_RowKey(p), _RowKey(q), count, option)


class _RowKey:
    """A cache key that compares a pmf by its values."""

    def __init__(self, pmf: Pmf) -> None:
        self.pmf = pmf
        self._key = (str(pmf.dtype), tuple(pmf.tolist()))
        self._hash = hash(self._key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _RowKey) and self._key == other._key
