"""Paths of a certificate that can be replayed: the calls of the subject, with arguments, drawn values and results.

The program runs along a path, then again with concrete random numbers that lead to the same path. Each call of the
subject's function in the second run is written in the format that ``specverify.certificates.replay`` reads.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from specverify.certificates.checker import CertificateRefused
from specverify.certificates.replay import callable_named, digest, plain, source_of, versions
from specverify.checks.coupled_runs import SEED
from specverify.intercept.cpython.sandbox import generators_moved
from specverify.intercept.interpreters import Gathered
from specverify.intercept.recorded_numbers import NotRecorded
from specverify.intercept.refusals import NeedsValue
from specverify.intercept.replayer import Replayer
from specverify.laws.draws import NotAFunctionOfItsDraws, Replayed, Tape
from specverify.reference import Draws
from specverify.subjects.seeded import seeded

REPLAYS, ATTEMPTS = 5, 40
"""The most replayable paths per scenario, and the most paths that are tried to find them."""
LIBRARIES = ("numpy", "torch")
DRAWN_BY_NAME = "the subject draws by name, or is no function of an importable module"


class Replayable(NamedTuple):
    """The function that a replay of a certificate calls, its code, and entries that identify it in the certificate."""

    name: str
    """The name of the function, ``module:name``."""
    code: CodeType
    head: Mapping[str, Any]
    """The digest of its source and the versions of libraries, as written in a certificate."""


def replayable(name: str) -> Replayable | None:
    """Return the function called ``name`` (``module:name``) for replays; None if it cannot be replayed.

    It must be importable, written in Python and without keyword-only or variadic parameters.
    """
    if ":" not in name or "<" in name:
        return None
    try:
        called = callable_named(name)
        file = source_of(called)
    except (CertificateRefused, TypeError):
        return None
    code = getattr(called, "__code__", None) or getattr(type(called).__call__, "__code__", None)
    if not file or not isinstance(code, CodeType) or code.co_flags & 0x0C or code.co_kwonlyargcount:
        return None
    head = {"function": name, "sources": {name: digest(file)}, "versions": versions(LIBRARIES)}
    return Replayable(name, code, head)


def replays_of(
    program: Callable[[Draws], Any], function: Replayable, law: Sequence[Any], ends: Callable[[Any], Any]
) -> list[Any]:
    """Return up to ``REPLAYS`` paths of ``program`` as JSON data for a certificate, each with its outcome and calls.

    The calls are those of ``function`` on the path. ``ends`` converts the result of a path to an outcome of the
    certified law; only paths whose outcome is one of ``law`` are returned. The result is [] if an argument or result of
    a call has no JSON form in a certificate, or if the draws cannot be recorded.
    """
    result: dict[str, Any] = {}
    try:
        for place in range(SEED, SEED + ATTEMPTS):
            gathered = Gathered(Tape(place))
            outcome = program(gathered)
            numbers = gathered.numbers(np.random.default_rng(place)) if ends(outcome) in law else None
            if numbers is None:
                continue
            draws = Replayer(Replayed(gathered.by_name), numbers)
            with seeded(place), generators_moved(place), _calls_of(function.code, draws) as calls:
                as_it_is = program(draws)
            if as_it_is == outcome and calls:
                path = {"ends": ends(outcome), "calls": calls}
                result.setdefault(json.dumps([path["ends"], [call["args"] for call in calls]]), path)
            if len(result) == REPLAYS:
                break
    except (NotRecorded, NeedsValue, NotAFunctionOfItsDraws, TypeError):
        return []
    return list(result.values())


@contextmanager
def _calls_of(code: CodeType, draws: Replayer) -> Iterator[list[Any]]:
    """In the ``with`` block, append each call of the function with this ``code`` to the yielded list.

    A call is recorded with its arguments, its result and the values that ``draws`` gave it.
    """
    calls: list[Any] = []
    first = int(code.co_varnames[:1] == ("self",))
    names, open_calls = code.co_varnames[first : code.co_argcount], dict[int, tuple[Any, int]]()

    def see(frame: FrameType, event: str, value: Any) -> None:
        if frame.f_code is not code:
            return
        if event == "call":
            arguments = [written(frame.f_locals[name]) for name in names]
            open_calls[id(frame)] = arguments, len(draws.returned)
        elif event == "return" and id(frame) in open_calls:
            arguments, start = open_calls.pop(id(frame))
            calls.append(
                {
                    "args": arguments,
                    "drawn": [[*name, written(item)] for *name, item in draws.returned[start:]],
                    "returned": plain(value),
                }
            )

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        yield calls
    finally:
        sys.setprofile(before)


def written(value: Any) -> Any:
    """Return ``value`` in the JSON form of a certificate. Raises ``TypeError`` for a type without such a form."""
    if value is None or (isinstance(value, (bool, int, float, str)) and not isinstance(value, np.generic)):
        return value
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return {"kind": kind, "items": [written(item) for item in value]}
    if isinstance(value, np.generic):
        return {"kind": "numpy", "dtype": value.dtype.name, "value": value.item(), "scalar": True}
    if isinstance(value, np.ndarray) and value.dtype != object:
        return {"kind": "numpy", "dtype": value.dtype.name, "value": value.tolist()}
    if type(value).__module__ == "torch" and hasattr(value, "numel"):
        return {"kind": "torch", "dtype": str(value.dtype).removeprefix("torch."), "value": value.tolist()}
    raise TypeError(f"a {type(value).__name__} has no place in a certificate")
