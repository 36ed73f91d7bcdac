"""Read, also from another thread, how many draws the current run of a subject has made."""

from __future__ import annotations

import random
import sys
from contextlib import suppress
from traceback import walk_stack
from types import FrameType
from typing import Any

import numpy as np

from specverify.foreign.places import is_foreign
from specverify.intercept.caller import file_of
from specverify.intercept.cpython import generator_states
from specverify.laws.divided import Divided
from specverify.laws.draws import Replayed, Tape
from specverify.laws.paths import Enumerated, Probe

Run = Divided | Enumerated | Probe | Replayed | Tape
"""An object that answers the draws of one run and counts them."""


def run_of(frame: FrameType | None) -> Run | None:
    """Return the source of draws (a ``Run``) of the run to which ``frame`` belongs; None if no run is active.

    The object is found as a local variable of ``frame`` or of one of its callers, foreign frames excluded.
    """
    for frame_below, _ in walk_stack(frame) if frame else ():
        if is_foreign(file_of(frame_below)):
            continue
        with suppress(RuntimeError):  # the variables change in another thread
            for value in frame_below.f_locals.values():
                if isinstance(value, Run):
                    return value
    return None


def draws_made(run: Run | None) -> object:
    """Return a value that changes with every draw of ``run``: the number of its draws.

    If ``run`` is None (no interception is active), return the states of the generators of ``random``, NumPy and torch.
    """
    if run is not None:
        with suppress(AttributeError, RuntimeError):  # the interpreter is being made, or counts in another thread
            return run.used if isinstance(run, (Replayed, Tape)) else run.depth
        return None
    torch = sys.modules.get("torch")
    if getattr(getattr(torch, "__spec__", None), "_initializing", False):
        torch = None  # it is being imported, and has no generator yet
    # read from memory: the libraries' own methods are answered while a program runs, and this is another thread
    own = generator_states.read(random._inst), generator_states.read(np.random.mtrand._rand)  # noqa: SLF001
    return *own, _of_torch(torch) if torch else None


def _of_torch(torch: Any) -> object:
    window = generator_states.window_of_torch(torch)
    return torch.default_generator.get_state().tolist() if window is None else window.raw
