"""Which line of the foreign code stands behind an equation of what JAX has traced.

A function under ``jit`` runs no more when its numbers are computed: the line is that which was traced. Functions of JAX
itself are traced once for all that call them, so of those the line that calls is meant.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
from jax._src import source_info_util

from specverify.intercept.run import PROCESS, RUNS

_JAX = str(Path(jax.__file__).parent)
_DRAWING = str(Path(jax.__file__).parent / "_src" / "random")


def of_jax(function: str) -> bool:
    """Return whether a traced function, named with its file, is of JAX itself."""
    return f" at {_JAX}" in function


def drawing_asks(equation: Any) -> bool:
    """Return whether a function of ``jax.random`` asks for a primitive; ``equation`` is where it was traced, if so."""
    if equation is not None:
        return any(frame.file_name.startswith(_DRAWING) for frame in equation.source_info.traceback.frames)
    frame: Any = sys._getframe(1)  # noqa: SLF001
    while frame is not None and not frame.f_code.co_filename.startswith(_DRAWING):
        frame = frame.f_back
    return frame is not None


@contextmanager
def lines_of(equation: Any) -> Iterator[None]:
    """Let ``caller`` name the line of an equation inside the block, if it has one."""
    RUNS.lines.append(lambda: line_of(equation))
    try:
        yield
    finally:
        RUNS.lines.pop()


def line_of(equation: Any) -> str:
    """Return file and line that an equation was traced from, or nothing."""
    found = PROCESS.jax_lines.get(id(equation))
    if found is None:
        frame = source_info_util.user_frame(equation.source_info.traceback)
        line = "" if frame is None else f"{Path(frame.file_name).name}:{frame.start_line}"
        found = PROCESS.jax_lines[id(equation)] = (equation, line)  # it is kept, so that no other one gets its number
    return found[1]
