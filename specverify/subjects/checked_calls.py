"""One call of a verifier: its arguments, its result, and later changes of either."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from specverify.base.callables import POSITIONAL, signature_of
from specverify.intercept.refusals import NeedsValue

Given = Mapping[str, Any]
"""Arguments of a verifier by name, NumPy arrays."""
Convert = Callable[[Given], tuple[Any, ...]]
"""``convert(given)`` returns the arguments in order, in the kind of arrays that the verifier accepts."""

NOTHING: Mapping[str, float] = {}
MOST_TOLD = 40
"""The most numbers in arguments that a message about an error prints."""


class KeptCall(NamedTuple):
    """A recorded call of a verifier.

    ``answer`` is its result, and ``read(answer)`` returns the emitted tokens.
    """

    names: tuple[str, ...]
    """The names of the arguments."""
    given: tuple[Any, ...]
    """The arrays or tensors that were passed."""
    before: tuple[Any, ...]
    """Copies of their contents before the call, as NumPy arrays."""
    answer: Any
    found: Any
    """The emitted tokens, as ``read`` from the result."""
    read: Callable[[Any], Any]


_KEPT: ContextVar[list[KeptCall] | None] = ContextVar("kept", default=None)


@contextmanager
def calls_kept() -> Iterator[list[KeptCall]]:
    """In the ``with`` block, append every call of a verifier to the yielded list."""
    calls: list[KeptCall] = []
    token = _KEPT.set(calls)
    try:
        yield calls
    finally:
        _KEPT.reset(token)


def called(
    convert: Convert,
    given: Given,
    invoke: Callable[..., Any],
    read: Callable[[Any], Any],
    verify: Callable[..., Any],
    named: Mapping[str, float] = NOTHING,
) -> Any:
    """Call ``invoke`` on the arrays ``given``, converted by ``convert``, and return ``read`` of its result.

    Inside ``calls_kept`` the call is recorded. If the call raises, all arguments are attached to the error, for its
    message: the arrays, under the names of the parameters of ``verify``, the verifier that ``invoke`` calls, and
    ``named``, arguments that are passed to it by name.
    """
    arrays, calls = convert(given), _KEPT.get()
    if calls is None:
        return read(_invoked(invoke, convert, arrays, {**given, **named}, verify))
    before = tuple(_numbers(array).copy() for array in arrays)
    answer = _invoked(invoke, convert, arrays, {**given, **named}, verify)
    result = read(answer)
    calls.append(KeptCall(tuple(given), arrays, before, answer, result, read))
    return result


class RefusedForm:
    """A function that converts arguments to a kind of arrays, such as tensors, that the verifier may not accept.

    This is unknown because every attempt to call the verifier on such arrays was refused: the verifier uses an
    operation that interception does not support.
    """

    def __init__(self, convert: Convert, refusal: NeedsValue) -> None:
        """Store a way to convert arguments (``convert``), and the refusal with which the first call with it ended."""
        self.convert, self.refusal = convert, refusal

    def __call__(self, given: Given, /) -> tuple[Any, ...]:
        """Return the arguments ``given`` (name -> array), converted."""
        return self.convert(given)


def is_about_arrays(error: Exception) -> bool:
    """Return whether an error of a verifier may be caused by the wrong kind of arrays, such as NumPy for tensors."""
    said = str(error).lower()
    return isinstance(error, TypeError | AttributeError) or any(word in said for word in ("ndarray", "numpy", "tensor"))


def _invoked(
    invoke: Callable[..., Any], convert: Convert, arrays: tuple[Any, ...], given: Given, verify: Callable[..., Any]
) -> Any:
    """Return ``invoke(*arrays)``, where ``arrays`` are ``given`` as converted by ``convert``.

    If the call raises, the arguments are attached to the error, under the names that they have in ``verify``. If
    ``convert`` is a ``RefusedForm``, its refusal is raised in place of an error about arrays.
    """
    try:
        return invoke(*arrays)
    except Exception as error:
        if isinstance(convert, RefusedForm) and not isinstance(error, NeedsValue) and is_about_arrays(error):
            raise convert.refusal.again() from error
        with suppress(AttributeError):  # one with slots
            error.raised_at = _by_its_names(verify, given)  # type: ignore[attr-defined]
        raise


def _by_its_names(verify: Callable[..., Any], given: Given) -> Given:
    """Return the arguments ``given`` under the names of the parameters of ``verify``, which are passed in this order.

    The name that the argument has here follows in brackets if it differs: ``speculator (draft_tokens)``. So a reader
    sees which argument has arrived where. An argument that is called as a parameter is has this name alone, also where
    one before it is not given: the q of a tree, say.
    """
    signature = signature_of(verify)
    taken = [item for item in signature.parameters.values() if item.kind in POSITIONAL] if signature else []
    own = [item.name for item in taken]
    names = dict(zip(given, own, strict=False))
    return {
        name if name in own or name not in names else f"{names[name]} ({name})": array for name, array in given.items()
    }


def given_when_raised(error: BaseException) -> str:
    """Return the arguments of the verifier's call that raised ``error``, as text; large arrays are omitted."""
    given: Given = getattr(error, "raised_at", {})
    if sum(np.size(array) for array in given.values()) > MOST_TOLD:
        given = {name: value for name, value in given.items() if not np.ndim(value)}
    return ", ".join(f"{name} = {np.asarray(array).tolist()}" for name, array in given.items())


def changed_input(call: KeptCall) -> str | None:
    """Describe the first argument that the call changed, and where; None if none changed."""
    for name, array, before in zip(call.names, call.given, call.before, strict=True):
        now = _numbers(array)
        if now.shape != before.shape or now.dtype != before.dtype:
            return f"{name} was {_kind(before)} and is {_kind(now)} after the call"
        places = np.argwhere(now != before)
        if len(places):
            place = tuple(places[0].tolist())
            inside = ", ".join(map(str, place))
            return f"{name}[{inside}] was {before[place].item()!r} and is {now[place].item()!r} after the call"
    return None


def overwrite_inputs(call: KeptCall) -> None:
    """Overwrite the argument arrays of a finished call, as a caller does that reuses its buffers.

    If the result of the call changes, it shares memory with the arguments.
    """
    for array in map(_numbers, call.given):
        if array.flags.writeable:
            array[...] = 1 - array


def changed_answer(call: KeptCall) -> str | None:
    """Describe how the result of a call has changed since it was returned; None if it is unchanged or an iterator."""
    rows = call.answer if isinstance(call.answer, list | tuple) else ()  # a tensor of inference mode has no iterator
    if isinstance(call.answer, Iterator) or any(isinstance(row, Iterator) for row in rows):
        return None
    try:
        now = call.read(call.answer)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with it now was not when it was given
        return f"{call.found} was emitted; read again, {error}"
    return None if now == call.found else f"{call.found} was emitted, and the same answer holds {now} afterwards"


def _numbers(array: Any) -> Any:
    """Return the array as NumPy numbers; a JAX array, which is immutable, as a read-only array."""
    return array.detach().numpy() if hasattr(array, "detach") else np.asarray(array)


def _kind(array: Any) -> str:
    return f"{array.dtype}{list(array.shape)}"
