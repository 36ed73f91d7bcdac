"""Which line of the foreign code asked."""

from __future__ import annotations

import random
import sys
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np


def caller(trace: TracebackType | None = None) -> str:
    """Return file and line of the innermost frame outside torch, NumPy, ``random`` and this package.

    With ``trace`` the innermost such frame of a traceback.
    """
    frame: Any = sys._getframe(1)  # noqa: SLF001
    while trace is None and frame is not None:
        name = _foreign_name(frame.f_code.co_filename)
        if name:
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    found = "unknown place"
    while trace is not None:
        name = _foreign_name(trace.tb_frame.f_code.co_filename)
        found = f"{name}:{trace.tb_lineno}" if name else found
        trace = trace.tb_next
    return found


@cache
def _foreign_name(filename: str) -> str:
    """Return the name of a file that belongs to the foreign code, or nothing."""
    ours = [Path(np.__file__).parent, Path(__file__).parent, Path(random.__file__)]
    if "torch" in sys.modules:
        ours.append(Path(str(sys.modules["torch"].__file__)).parent)
    path = Path(filename)
    return "" if any(path.is_relative_to(place) for place in ours) else path.name
