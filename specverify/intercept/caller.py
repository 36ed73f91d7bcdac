"""Find the line of the code under test ("foreign code") that made a call."""

from __future__ import annotations

import collections
import multiprocessing
import random
import sys
import sysconfig
import threading
from functools import cache
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import numpy as np

from specverify.intercept.run import PROCESS, RUNS

NOWHERE = "unknown place"
_COMPILED = "<string>"
"""File name of code that was compiled from a string."""
_INSIDE = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
"""Names of code objects that belong to the enclosing function."""


class DrawLine(str):
    """File and line of a draw, as a string; ``called_from`` is the line that called the function which draws."""

    __slots__ = ("called_from",)
    called_from: str
    """File and line from which the drawing function was called; '' if no other foreign code called it."""

    def in_full(self) -> str:
        """Return the line of the draw, with the line that called the drawing function if several lines call it.

        An example is "f.py:12 called from g.py:3". If only one line calls the function, the result is "f.py:12" alone.
        """
        several = len(PROCESS.callers.get(self, ())) > 1 and self.called_from
        return f"{self} called from {self.called_from}" if several else str(self)


def draw_line() -> DrawLine:
    """Return file and line of the foreign code that draws; ``NOWHERE`` if no foreign code is running.

    The attribute ``called_from`` of the result is the line that called the drawing function.
    """
    traced = RUNS.lines[-1]() if RUNS.lines else ""
    frame, name = (None, "") if traced else _foreign_frame_and_name()
    result = DrawLine(traced or (NOWHERE if frame is None else f"{name}:{frame.f_lineno}"))
    result.called_from = "" if frame is None else _line_of_call(frame)
    PROCESS.callers.setdefault(result, set()).add(result.called_from)
    return result


def draws_constant() -> bool:
    """Return whether the line that draws now is one whose draws are constants, so that the library draws there."""
    return bool(PROCESS.constant_lines) and caller() in PROCESS.constant_lines


def _line_of_call(frame: FrameType) -> str:
    """Return file and line at which foreign code called the function of ``frame``.

    The result is "" if the caller is not foreign code.
    """
    answered, outer = jax_is_answered(), frame
    while outer.f_code.co_name in _INSIDE and outer.f_back is not None:
        outer = outer.f_back
    back = outer.f_back
    while back is not None and not is_own(back.f_code.co_filename):
        name = _name_if_foreign(file_of(back), answered)
        if name:
            return f"{name}:{back.f_lineno}"
        back = back.f_back
    return ""


def file_of(frame: FrameType) -> str:
    """Return the file of the code of a frame.

    Code that the standard library compiles from strings, such as methods of named tuples, counts as part of the
    library.
    """
    name, around = frame.f_code.co_filename, frame.f_globals
    if name != _COMPILED:
        return name
    begins = frame.f_back is None and multiprocessing.parent_process() is not None
    own = begins or "__file__" in around or str(around.get("__name__")).startswith("namedtuple_")
    return str(collections.__file__) if own else name


def caller(trace: TracebackType | None = None) -> str:
    """Return file and line of the innermost foreign frame: of the current stack, or of the traceback ``trace``.

    A frame is foreign if its code is outside torch, NumPy, the standard library and this package. Without a foreign
    frame, the result is ``NOWHERE``. In a function that JAX traced before, it is the line that was traced.
    """
    traced = RUNS.lines[-1]() if RUNS.lines and trace is None else ""
    if traced:
        return traced
    if trace is None:
        frame, name = _foreign_frame_and_name()
        return NOWHERE if frame is None else f"{name}:{frame.f_lineno}"
    result = NOWHERE
    while trace is not None:
        name = _foreign_name(file_of(trace.tb_frame))
        result = f"{name}:{trace.tb_lineno}" if name else result
        trace = trace.tb_next
    return result


def called_by_foreign(trace: TracebackType | None) -> str:
    """Return the name of the library function that foreign code called when an error was raised.

    The error has the traceback ``trace``. The result is "" if that function is not written in Python. Foreign code is
    outside torch, NumPy, the standard library and this package.
    """
    result, package = "", Path(__file__).parent.parent
    while trace is not None:
        file = file_of(trace.tb_frame)
        if _foreign_name(file):
            result = ""
        elif not result and not Path(file).is_relative_to(package):
            result = trace.tb_frame.f_code.co_name
        trace = trace.tb_next
    return result


def foreign_frame() -> Any:
    """Return the innermost stack frame of foreign code, or None if no foreign code is running.

    Foreign code is outside torch, NumPy, the standard library and this package.
    """
    return _foreign_frame_and_name()[0]


def _foreign_frame_and_name() -> tuple[Any, str]:
    """Return the innermost stack frame of foreign code and the name of its file; (None, "") if there is none.

    Both are read together, because Python raises an audit event each time the code object of a frame is read.
    """
    frame: Any = sys._getframe(2)  # noqa: SLF001
    answered = jax_is_answered()
    while frame is not None:
        filename = frame.f_code.co_filename
        name = _name_if_foreign(file_of(frame) if filename == _COMPILED else filename, answered)
        if name:
            return frame, name
        frame = frame.f_back
    return None, ""


def is_ours_or_answered(filename: str) -> bool:
    """Return whether the file ``filename`` belongs to specverify or to a library whose random calls it intercepts."""
    return _is_ours_or_of_library(filename, jax_is_answered())


@cache
def _is_ours_or_of_library(filename: str, jax: bool) -> bool:
    """Return whether the file ``filename`` belongs to specverify or to a library whose random calls it intercepts.

    JAX counts as such a library only if ``jax`` is True. The planted bugs in ``specverify/mutants`` do not count as
    part of specverify.
    """
    path, package = Path(filename), Path(__file__).parent.parent
    libraries = ("torch", "jax", "jaxlib") if jax else ("torch",)
    ours = [Path(np.__file__).parent, package, Path(random.__file__), Path(threading.__file__)]
    ours += [Path(str(sys.modules[name].__file__)).parent for name in libraries if name in sys.modules]
    planted = path.is_relative_to(package / "mutants")  # stands for somebody else's
    return not planted and any(path.is_relative_to(place) for place in ours)


def jax_is_answered() -> bool:
    """Return whether JAX is loaded in a version whose draws are intercepted."""
    return sys.modules.get("specverify.intercept.jax.calls") is not None


@cache
def is_own(filename: str) -> bool:
    """Return whether the file ``filename`` belongs to specverify outside of the subpackage ``intercept``.

    ``intercept`` is left out, because its functions run inside the calls of foreign code.
    """
    here = Path(__file__).parent
    return (
        is_ours_or_answered(filename)
        and Path(filename).is_relative_to(here.parent)
        and not Path(filename).is_relative_to(here)
    )


@cache
def standard_library(filename: str) -> tuple[str, ...]:
    """Return the parts of the path of ``filename`` inside the standard library, such as ("json", "decoder.py").

    Returns () if the file lies outside, as files of installed packages do.
    """
    library, path = Path(sysconfig.get_path("stdlib")), Path(filename)
    inside = path.is_relative_to(library) and not {"site-packages", "dist-packages"} & set(path.parts)
    return path.relative_to(library).parts if inside else ()


def _foreign_name(filename: str) -> str:
    """Return the name of the file ``filename``, without folders, if it contains foreign code; "" otherwise.

    Foreign code is outside torch, NumPy, JAX, the standard library and this package.
    """
    return _name_if_foreign(filename, jax_is_answered())


@cache
def _name_if_foreign(filename: str, jax: bool) -> str:
    """Return the name of the file ``filename``, without folders, if it contains foreign code; "" otherwise.

    Foreign code is outside torch, NumPy, the standard library and this package, and outside JAX if ``jax`` is True.
    """
    if _is_ours_or_of_library(filename, jax) or standard_library(filename) or filename.startswith("<frozen "):
        return ""
    return Path(filename).name
