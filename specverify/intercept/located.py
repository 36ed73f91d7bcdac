"""Where a draw is made that nobody sees: the run is traced line by line until the state of a generator has moved.

A draw of a scripted function, of a thread that stood before or of a method kept where nobody looks is noticed by the
state it leaves, at the next draw or at the end. Traced, it is noticed at the next line.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from specverify.intercept.block import current, tried
from specverify.intercept.caller import file_of, is_ours_or_answered, standard_library
from specverify.intercept.unknowns.uniform import NeedsValue
from specverify.reference import Draws

_PLACE = re.compile(r"\w\.\w+:\d+")


def named(refusal: NeedsValue, run: Callable[[Draws], Any], draws: Draws) -> str:
    """Return what a refusal says, with file and line: by running again what raised it, if it names none."""
    if _PLACE.search(str(refusal)):
        return str(refusal)
    try:
        with _traced():
            run(draws)
    except NeedsValue as found:
        return str(found)
    return str(refusal)


@contextmanager
def _traced() -> Iterator[None]:
    """Look at every line of foreign code inside the block whether something was drawn unseen on the line before."""
    last = [""]

    def trace(frame: Any, event: str, _: Any) -> Any:
        filename = file_of(frame)
        if is_ours_or_answered(filename) or standard_library(filename):
            return None
        block = current()
        if block is not None and last[0]:
            for look in block.looks:
                _asked(look, last[0])
        last[0] = f"{Path(filename).name}:{frame.f_lineno}"
        return trace

    before = sys.gettrace(), threading.gettrace()
    sys.settrace(trace)
    threading.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before[0])
        threading.settrace(before[1])


def _asked(look: Callable[[], None], place: str) -> None:
    try:
        with tried():
            look()
    except NeedsValue as refusal:
        raise refusal.again().at(place) from None
