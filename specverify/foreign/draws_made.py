"""How many draws the run that is going on has made: whether a subject draws can be seen from outside."""

from __future__ import annotations

import random
import sys
from contextlib import suppress
from traceback import walk_stack
from types import FrameType

import numpy as np

from specverify.foreign.places import is_foreign
from specverify.intercept.caller import file_of
from specverify.laws.divided import Divided
from specverify.laws.draws import Replayed, Tape
from specverify.laws.paths import Enumerated, Probe

Run = Divided | Enumerated | Probe | Replayed | Tape
"""An interpreter that answers the draws of one run and counts them."""


def run_of(frame: FrameType | None) -> Run | None:
    """Return the interpreter of the run that a frame belongs to; None where no interpreter answers."""
    for frame_below, _ in walk_stack(frame) if frame else ():
        if is_foreign(file_of(frame_below)):
            continue
        with suppress(RuntimeError):  # the variables change in another thread
            for value in frame_below.f_locals.values():
                if isinstance(value, Run):
                    return value
    return None


def draws_made(run: Run | None) -> object:
    """Return how many draws a run has made; without an interpreter the states of the libraries' own generators."""
    if run is not None:
        with suppress(AttributeError, RuntimeError):  # the interpreter is being made, or counts in another thread
            return run.used if isinstance(run, (Replayed, Tape)) else run.depth
        return None
    torch = sys.modules.get("torch")
    if getattr(getattr(torch, "__spec__", None), "_initializing", False):
        torch = None  # it is being imported, and has no generator yet
    legacy = np.random.get_state(legacy=False)  # noqa: NPY002 - its state is read, nothing is drawn
    return random.getstate(), repr(legacy), torch.get_rng_state().tolist() if torch else None
