"""A plain run with given random numbers: each drawing call of the libraries returns the next of them.

``Replayer`` is a ``Recorder`` that replaces the drawn numbers by given ones. The libraries draw as usual, so a result
has the library's type, shape and dtype, and the generators advance. The rules for symbolic numbers are not used here.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from copy import copy
from typing import Any

from specverify.intercept.fed_numbers import values_for
from specverify.intercept.recorded_numbers import Item, NotRecorded, items_of
from specverify.intercept.recorder import NOT_DRAWING, PASSED_THROUGH, Record, Recorder
from specverify.reference import Draws


class Replayer(Recorder):
    """Give a program its random numbers; ``named`` answers the draws that it makes through ``draws``."""

    def __init__(self, named: Draws, numbers: Iterable[Item]) -> None:
        """Store ``numbers``, which replace the drawn numbers in order; an empty ``Item()`` keeps the drawn one."""
        super().__init__(named)
        self._left = deque(numbers)
        self.parted = ""
        """The first call that draws something else than it is given."""
        self.returned: list[tuple[str, str, Any]] = []
        """What each call returned, and of a shuffle the order, by library and name."""

    def call(self, library: str, name: str, real: Callable[..., Any], generator: Any, given: Any, named: Any) -> Any:
        """Return the result of a library method with the given numbers in place of the drawn ones."""
        result = super().call(library, name, real, generator, given, named)
        if name not in NOT_DRAWING | PASSED_THROUGH:
            self.returned.append((library, name, copy(self.records[-1].result if name == "shuffle" else result)))
        return result

    def keep(self, record: Record) -> None:
        """Add ``record``. For torch, also store its result, because torch's calls do not go through ``call``."""
        super().keep(record)
        if record.library == "torch" and record.result.numel():
            self.returned.append(("torch", record.name, record.result))

    def key(self) -> Any:
        """Raise ``NotRecorded``, because the numbers of JAX are a function of keys."""
        raise NotRecorded("the numbers of JAX are a function of keys")

    def given_for(self, record: Record) -> Any:
        """Return the values that replace the numbers of a recorded call, in the shape of its result."""
        drawn = items_of(record)
        if len(drawn) > len(self._left):
            self.parted = self.parted or f"{record} draws {len(drawn)} numbers, of which {len(self._left)} are left"
            return record.result
        return values_for(record, [self._given(item, record) for item in drawn])

    def _given(self, drawn: Item, record: Record) -> Item:
        given = self._left.popleft()
        if given.outcome is None and math.isnan(given.low):
            return drawn
        if given.outcome is None and math.isnan(drawn.low):
            self.parted = self.parted or f"{record} draws an outcome, and a number is given"
            return drawn
        return given

    def left(self) -> str:
        """Return a sentence if numbers are left over; "" if there are none."""
        return f"{len(self._left)} numbers that it is given are not drawn" if self._left else ""
