"""The kind of arrays that a verifier computes with (NumPy, torch or JAX), determined by calling it.

JAX arrays are used if the verifier's code names jax and runs on them, otherwise NumPy arrays. If the verifier raises on
NumPy arrays, tensors are tried, provided that its code names torch or that the error is about the kind of an array. Any
other error is the verifier's own, and the checks report it with NumPy arrays. If the verifier raises on both kinds and
only one error is about the kind of an array, the other kind is used; otherwise the kind that its code names. Tensors
are float64. If the verifier raises on float64 tensors but not on float32 ones, because it mixes them with
``torch.rand``, they are float32.

If every attempt ends with a refusal (an operation that interception does not support), the accepted kind is unknown.
Then tensors are tried if its code names torch, and an error about arrays in a later call is replaced by the refusal:
see ``checked_calls.RefusedForm``.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from specverify.intercept.cpython import patches
from specverify.intercept.distributions import Boundary
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import NeedsValue, gifts_kept
from specverify.intercept.symbolic.large import at_large
from specverify.laws.draws import NotAFunctionOfItsDraws, Tape
from specverify.subjects.checked_calls import Convert, Given, RefusedForm, is_about_arrays
from specverify.subjects.libraries import imported_beside, names_library
from specverify.subjects.seeded import seeded

BareVerifier = Callable[..., Any]
Attempt = Callable[[BareVerifier, Convert], Any]
"""``attempt(verify, convert)`` calls a verifier once on small arrays, converted by ``convert``, and returns the tokens.
"""
SMALL_P, SMALL_Q, SMALL_DRAFT = np.array([[5, 4, 3, 2, 2], [2, 2, 3, 4, 5]]) / 16, np.array([[2, 3, 3, 4, 4]]) / 16, 3
"""Rows p, q and one draft: it is accepted with probability 1/2, and the residual is 3/4 and 1/4 on two tokens."""

PMFS = frozenset({"p", "q"})
_WAYS: tuple[tuple[int, float | None], ...] = ((0, 0.75), (0, 0.25), (0, None), (1, None), (2, None), (3, None))
"""(number of a tape of draws, value of all uniforms or None) of each attempt; together they reach several branches."""
MOST_EQUAL = 2000
"""The most equal uniforms of an attempt; a loop that ends by chance may never end with them."""
SEED = 274054
"""A seed with which every library first draws a uniform above 0.6, and then the rarer of outcomes of 3/4 and 1/4."""
REPEATS = 40
"""Number of repeated calls. Each answer of a right verifier has probability at most 2/3, so equal answers have 1e-7."""
BEGINS_OTHERWISE = "its first calls return other results than later calls with equal arguments and draws"
BEGUN_ALONE = (
    "its very first call returned another result than later calls with equal arguments and seeds; "
    "if it draws something once and keeps it, such as weights, draw that before"
)


@lru_cache(maxsize=256)
def arrays_of(verify: BareVerifier, attempt: Attempt) -> Convert:
    """Return a function that converts arguments to the arrays that ``verify`` computes with.

    ``attempt(verify, convert)`` calls the verifier once on small arrays and returns the tokens. If the first calls
    return other results than later calls with equal draws, the verifier cannot be examined. The returned function then
    only raises an error: ``NeedsValue`` if a random number reached the verifier as an ordinary number, else
    ``NotAFunctionOfItsDraws``.
    """
    modules = len(sys.modules)
    first = _unanswered(verify, attempt)
    loaded = len(sys.modules) > modules  # what it imports, it imports at first; and some draw as they load
    asked = partial(_asked_of_calls, verify, attempt)
    result = patches.again(asked)  # the first calls of ``float`` are not answered
    if loaded or isinstance(result, partial) or not _stands_alone(first, verify, attempt):
        return result
    return partial(_is_not_one, BEGUN_ALONE)


def _unanswered(verify: BareVerifier, attempt: Attempt) -> Any:
    """Return the tokens of one call of ``verify`` without interception, with seeded generators; None if it raises.

    ``attempt(verify, convert)`` makes the call. The verifier gets tensors if its code names torch, else NumPy arrays.
    """
    convert = _in_tensors if "torch" in sys.modules and names_library(verify, "torch") else _in_numpy
    with suppress(Exception), seeded(SEED), _errors_in_threads_unsaid():
        return attempt(verify, convert)
    return None


def _stands_alone(first: Any, verify: BareVerifier, attempt: Attempt) -> bool:
    """Return whether the ``first`` answer differs from all later answers, which are equal to each other.

    If so, the verifier keeps state from its first call. ``attempt(verify, convert)`` makes a call.
    """
    if not _is_of_numbers(first):
        return False
    later = _unanswered(verify, attempt)
    return later != first and all(_unanswered(verify, attempt) == later for _ in range(REPEATS))


class _Attempted(NamedTuple):
    """The result of calling a verifier with one kind of arrays: an error of the verifier, a refusal, or neither.

    A refusal is the error ``NeedsValue``: interception does not support an operation on random numbers.
    """

    error: Exception | None = None
    """The first error it raised; None if it raised none."""
    refusal: NeedsValue | None = None
    """The first refusal of interception, if every attempt ended with one; else None."""


def _asked_of_calls(verify: BareVerifier, attempt: Attempt) -> Convert:
    begun: dict[Convert, list[Any]] = {}
    refusals: dict[Convert, NeedsValue] = {}
    result = _chosen(verify, attempt, begun, refusals)
    looked_at = result if result in begun else _in_tensors
    later, again = dict[Convert, list[Any]](), dict[Convert, list[Any]]()
    with gifts_kept() as gifts:
        for answers in (later, again):
            _attempted(verify, attempt, looked_at, answers)
    if later != again or begun == {**begun, **later}:
        return RefusedForm(result, refusals[looked_at]) if looked_at in refusals else result
    return partial(_needs_a_value, "; ".join(gifts)) if gifts else partial(_is_not_one, BEGINS_OTHERWISE)


def _needs_a_value(given: str, _: Given) -> tuple[Any, ...]:
    raise NeedsValue(
        "value-needed", f"{given}, and what hangs on it (its bits, say) is not followed: compare it or shift it"
    )


def _is_not_one(why: str, _: Given) -> tuple[Any, ...]:
    raise NotAFunctionOfItsDraws(why)


def _chosen(
    verify: BareVerifier, attempt: Attempt, answers: dict[Convert, list[Any]], refusals: dict[Convert, NeedsValue]
) -> Convert:
    """Return the conversion of arguments to the kind of arrays that the verifier accepts (see the module).

    ``attempt(verify, convert)`` makes a call. The results of the calls are stored in ``answers``, by conversion. If
    every call with a conversion was refused, the refusal is stored in ``refusals``.
    """

    def outcome(convert: Convert) -> _Attempted:
        result = _attempted(verify, attempt, convert, answers)
        if result.refusal is not None:
            refusals[convert] = result.refusal
        return result

    named = "jax" in sys.modules and names_library(verify, "jax")
    if named and outcome(_in_jax).error is None:
        return _in_jax
    first = outcome(_in_numpy)
    beside = first.error is not None and "jax" in sys.modules and imported_beside(verify, "jax")
    if beside and outcome(_in_jax).error is None:
        return _in_jax
    if "torch" not in sys.modules or not _may_take_tensors(verify, first):
        return _in_numpy
    return _numpy_or_torch(verify, first, outcome)


def _may_take_tensors(verify: BareVerifier, first: _Attempted) -> bool:
    """Return whether to call ``verify`` with tensors after NumPy arrays (see the module).

    ``first`` is the result of the verifier on NumPy arrays.
    """
    names_torch = names_library(verify, "torch")
    if first.error is None:
        return first.refusal is not None and names_torch
    return names_torch or is_about_arrays(first.error)


def _numpy_or_torch(verify: BareVerifier, first: _Attempted, outcome: Callable[[Convert], _Attempted]) -> Convert:
    """Return the conversion of arguments for a verifier that raised an error or was refused on NumPy arrays.

    ``outcome(convert)`` calls ``verify`` with arguments converted by ``convert`` and returns the result. If ``verify``
    runs on tensors of float64, of float32 or of both, the conversion to such tensors is returned. If it runs on
    neither, the conversion is

    * to NumPy arrays, if the calls with NumPy arrays were only refused (``first`` has their error or refusal);
    * to the other kind, if only one of the errors on NumPy arrays and on tensors is about the kind of an array;
    * otherwise to tensors if the code of ``verify`` names torch, else to NumPy arrays.
    """
    second, single = (outcome(convert).error for convert in (_in_tensors, _in_float32))
    if second is None:
        return _in_tensors if single else _as_given
    if single is None:
        return _in_float32
    if first.error is None:
        return _in_numpy
    if is_about_arrays(first.error) != is_about_arrays(second):
        return _in_tensors if is_about_arrays(first.error) else _in_numpy
    return _in_tensors if names_library(verify, "torch") else _in_numpy


def takes_tensors(verify: BareVerifier, given: tuple[Any, ...]) -> bool:
    """Return whether NumPy arrays like ``given`` must be converted to tensors before they are passed to ``verify``.

    To decide this, ``verify`` is called with NumPy arrays, and with tensors if it does not run on NumPy arrays. Returns
    False if torch is not imported.
    """

    def attempt(function: BareVerifier, convert: Convert) -> None:
        function(*convert({}))

    def as_arrays(_: Given) -> tuple[Any, ...]:
        return tuple(array.copy() for array in given)

    def as_tensors(_: Given) -> tuple[Any, ...]:
        return tuple(sys.modules["torch"].from_numpy(array.copy()) for array in given)

    with suppress(Exception), seeded(0):  # what it imports, it imports here, before anything is answered
        attempt(verify, as_arrays)
    if "torch" not in sys.modules:
        return False
    with at_large():
        first = _attempted(verify, attempt, as_arrays)
        if not _may_take_tensors(verify, first):
            return False
        second = _attempted(verify, attempt, as_tensors)
    return second.error is None or names_library(verify, "torch")


def _attempted(
    verify: BareVerifier, attempt: Attempt, convert: Convert, answers: dict[Convert, list[Any]] | None = None
) -> _Attempted:
    """Call ``verify`` a few times on arrays from ``convert``; return its first error or refusal, if there is one.

    ``attempt(verify, convert)`` makes a call. A refusal (an operation on random numbers that interception does not
    support) is returned only if every call ends with one. ``answers[convert]`` receives the tokens of each answer, or
    None if they are not numbers.
    """
    told = {} if answers is None else answers
    told[convert] = []
    refusals: list[NeedsValue] = []
    for tape, forced in _WAYS:
        try:
            boundary = None if forced is None else Boundary(forced, most=MOST_EQUAL)
            with _errors_in_threads_unsaid(), answered_everywhere(Tape(tape), boundary):
                answer = attempt(verify, convert)
            told[convert].append(answer if _is_of_numbers(answer) else None)
        except NeedsValue as refusal:
            refusals.append(refusal)
        except Exception as error:  # noqa: BLE001 - it may refuse arrays in any way
            return _Attempted(error)
    return _Attempted(None, refusals[0] if len(refusals) == len(_WAYS) else None)


@contextmanager
def _errors_in_threads_unsaid() -> Iterator[None]:
    """In the ``with`` block, do not print errors that end threads of a verifier.

    Such errors are expected while kinds of arrays are tried. Errors of specverify itself are printed.
    """
    before = threading.excepthook

    def only_ours(args: Any) -> None:
        if isinstance(args.exc_value, (NeedsValue, NotAFunctionOfItsDraws)):
            before(args)

    threading.excepthook = only_ours
    try:
        yield
    finally:
        threading.excepthook = before


def _is_of_numbers(answer: Any) -> bool:
    return all(map(_is_of_numbers, answer)) if isinstance(answer, tuple) else isinstance(answer, int)


def conversions(verify: BareVerifier) -> Iterator[Convert]:
    """Yield the conversions of arguments to arrays of each imported library, first to those that ``verify`` names."""
    of_torch = (_in_tensors, _in_float32) if "torch" in sys.modules else ()
    if "jax" in sys.modules and names_library(verify, "jax"):
        yield _in_jax
    if names_library(verify, "torch"):
        yield from of_torch
    yield _in_numpy
    yield from () if names_library(verify, "torch") else of_torch


def _in_numpy(given: Given) -> tuple[Any, ...]:
    """Return copies of the arguments ``given`` (name -> array), so that no call sees what another one has written."""
    return tuple(_doubled(name, array) for name, array in given.items())


def _in_tensors(given: Given) -> tuple[Any, ...]:
    return tuple(sys.modules["torch"].from_numpy(array) for array in _in_numpy(given))


def _in_jax(given: Given) -> tuple[Any, ...]:
    """Return the arguments ``given`` (name -> array) as JAX arrays, in float32 unless ``jax_enable_x64`` is on."""
    return tuple(sys.modules["jax"].numpy.asarray(array) for array in given.values())


def _in_float32(given: Given) -> tuple[Any, ...]:
    floats = {name: array.astype(np.float32) if array.dtype == np.float64 else array for name, array in given.items()}
    return _as_given(floats)


def _as_given(given: Given) -> tuple[Any, ...]:
    """Return the arguments ``given`` (name -> array) as tensors of the same dtypes; float32 rows stay float32."""
    return tuple(sys.modules["torch"].from_numpy(array.copy()) for array in given.values())


def _doubled(name: str, array: Any) -> Any:
    """Return a copy of ``array`` in float64; float32 pmfs (``name`` p or q) are scaled to sum to 1 in float64."""
    if array.dtype != np.float32:
        return array.copy()
    rows = array.astype(np.float64)
    return rows / rows.sum(-1, keepdims=True) if name in PMFS else rows
