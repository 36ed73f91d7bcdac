"""Objects that ``gc.freeze`` hides from the garbage collector, and so from searches of the process.

Engines freeze what they loaded, so that collections do not visit it. A search must still find the generators and clocks
in it. The tests of specverify freeze their own objects, because each test searches the process.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from specverify.intercept.run import PROCESS


@contextmanager
def frozen_seen() -> Iterator[None]:
    """Context manager: the garbage collector also reports frozen objects, which are frozen again at the end.

    After ``keep_out`` frozen objects remain hidden.
    """
    if PROCESS.keeps_out or not gc.get_freeze_count():
        yield
        return
    gc.unfreeze()
    try:
        yield
    finally:
        gc.collect()  # so that no garbage is frozen
        gc.freeze()


def keep_out() -> None:
    """Hide all objects of the process from later searches, for tests that make many of them."""
    gc.collect()
    gc.freeze()
    PROCESS.keeps_out = True
