"""Calls of a batched verification kernel: its arguments in its own library, and the tokens in its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

from specverify.subjects.emitted import type_and_shape
from specverify.subjects.kernel import Kernel, by_keyword, in_places
from specverify.subjects.subject import UnusableSubject

UNWRITTEN = -(2**31)
"""The value that fills ``out`` before a call if the convention has no padding."""


class KernelBatch(NamedTuple):
    """The rows of one call of a kernel, as arrays of NumPy or of the kernel's library."""

    p: Any
    """Target probabilities ``[B, gamma + 1, V]``."""
    q: Any
    """Draft probabilities ``[B, gamma, V]``."""
    drafts: Any
    """Drafted token ids ``[B, gamma]``."""
    lengths: Any
    """``[B]``, always NumPy integers: the number of drafts of each row."""


def run(kernel: Kernel, by_place: Sequence[Any], by_name: Mapping[str, Any]) -> Any:
    """Call the kernel and return its result.

    ``by_place`` are its positional and ``by_name`` its keyword arguments, from ``arguments_of``.
    """
    return kernel.call(*in_places(kernel, by_place, by_name), **by_keyword(kernel, by_name))


def as_given(kernel: Kernel, values: Any, dtype: str | None = None) -> Any:
    """Return a copy of NumPy ``values`` as an array of the kernel's library on its device.

    Floats get the dtype ``dtype``, by default that of the kernel.
    """
    xp, floats = kernel.xp, np.asarray(values).dtype.kind == "f"
    whole = "int32" if kernel.convention.library == "jax" else "int64"  # JAX has 64 bits only where told so
    kind = getattr(xp, dtype or (kernel.convention.dtype if floats else whole))
    place = {} if kernel.convention.device is None else {"device": kernel.convention.device}
    return xp.asarray(np.array(values), dtype=kind, **place)


def given_batch(kernel: Kernel, batch: KernelBatch) -> KernelBatch:
    """Return ``batch`` with its arrays converted to the kernel's library."""
    p, q, drafts, lengths = batch
    return KernelBatch(as_given(kernel, p), as_given(kernel, q), as_given(kernel, drafts), lengths)


def arguments_of(kernel: Kernel, batch: KernelBatch, random: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the positional and the keyword arguments of the kernel for ``batch``, as arrays of its library.

    ``random`` contains the arguments after the drafts. It is (uniforms ``[B, gamma]`` of the drafts, uniforms or noise
    of the last draw), or (seed, offset), or () for a kernel that takes neither.
    """
    rows, gamma = batch.drafts.shape
    coins: list[Any] = [] if kernel.inside else [random[0]]
    p, q, drafts, _ = batch
    if "cu_num_draft_tokens" in kernel.named:
        p = _flat(kernel, p, batch.lengths + 1)
        q, drafts, *coins = (_flat(kernel, values, batch.lengths) for values in (q, drafts, *coins))
    by_name: dict[str, Any] = {}
    if "lengths" in kernel.named:
        by_name["lengths"] = as_given(kernel, batch.lengths)
    if "cu_num_draft_tokens" in kernel.named:
        by_name["cu_num_draft_tokens"] = as_given(kernel, batch.lengths.cumsum())
    if "out" in kernel.named:
        full = kernel.convention.padding if kernel.convention.ends == "padding" else UNWRITTEN
        by_name["out"] = as_given(kernel, np.full((rows, gamma + 1), full))
    if "out_lengths" in kernel.named:
        by_name["out_lengths"] = as_given(kernel, np.full(rows, UNWRITTEN))
    return (p, q, drafts, *coins, *random[len(coins) :]), by_name


def _flat(kernel: Kernel, values: Any, lengths: Any) -> Any:
    """Return the first ``lengths[b]`` entries of every row b of ``values``, concatenated.

    ``kernel`` determines the library of the arrays.
    """
    if (lengths == values.shape[1]).all():
        return values.reshape(-1, *values.shape[2:])
    return values[as_given(kernel, np.arange(values.shape[1]) < lengths[:, None], "bool")]


def called(kernel: Kernel, batch: KernelBatch, random: tuple[Any, ...]) -> Any:
    """Call the kernel on ``batch``; return its tokens, ``[B, gamma + 1]`` with -1 after the end of a row.

    The result is an array of the kernel's library. ``random`` has the arguments after the drafts: two arrays of random
    numbers, (seed, offset) or (), see ``arguments_of``. Raises ``UnusableSubject`` for a result of another shape or
    kind.
    """
    by_place, by_name = arguments_of(kernel, batch, random)
    return tokens_of(kernel, run(kernel, by_place, by_name), by_name, batch)


def tokens_of(kernel: Kernel, answer: Any, by_name: dict[str, Any], batch: KernelBatch) -> Any:
    """Return the tokens in a kernel's result ``answer``, ``[B, gamma + 1]`` with -1 after the end of a row.

    ``by_name`` are the keyword arguments of the call, among them output arrays, and ``batch`` its rows. With flat
    arguments the result may be only as wide as the longest row.
    """
    tokens, numbers = _parts(kernel, answer, by_name)
    rows, gamma = batch.drafts.shape
    width = gamma + 1
    if "cu_num_draft_tokens" in kernel.named and getattr(tokens, "ndim", 0) == 2:
        width = min(width, max(int(tokens.shape[1]), int(batch.lengths.max()) + 1))
    _check_whole(tokens, "tokens", (rows, width))
    xp = array_namespace(tokens)
    if kernel.convention.ends == "padding":
        tokens = xp.where(tokens == kernel.convention.padding, -1, tokens)
    else:
        _check_whole(numbers, f"numbers of {_counted(kernel)}", (rows,))
        ends = numbers + 1 if kernel.convention.ends == "accepted" else numbers
        tokens = xp.where(as_given(kernel, np.arange(width)[None, :]) >= ends[:, None], -1, tokens)
    if width > gamma:
        return tokens
    return xp.concat(
        [tokens, xp.astype(as_given(kernel, np.full((rows, gamma + 1 - width), -1)), tokens.dtype)], axis=1
    )


def _parts(kernel: Kernel, answer: Any, by_name: dict[str, Any]) -> tuple[Any, Any]:
    """Return the tokens of a kernel's result, and the numbers per row that mark the end of each row.

    The numbers are of tokens or of accepted drafts, by the kernel's convention; None if padding marks the end. They are
    in ``answer``, or in output arrays in ``by_name``. Raises ``UnusableSubject`` if the result does not have the form
    of the convention.
    """
    ends = kernel.convention.ends
    if "out" in by_name:
        if ends == "padding" or "out_lengths" in by_name:
            return by_name["out"], by_name.get("out_lengths")
        if answer is None:
            raise UnusableSubject(
                f"it returned None and ends is {ends!r}, expected the number of {_counted(kernel)} of each row, "
                "returned or written to a parameter out_lengths"
            )
        return by_name["out"], answer
    if answer is None:
        raise UnusableSubject("it returned None and has no parameter out, expected tokens [rows, gamma + 1]")
    pair = isinstance(answer, tuple) and len(answer) == 2
    if ends == "padding":
        if pair:
            raise UnusableSubject(
                "it returned two things and ends is 'padding', expected tokens alone; if the second is how many tokens "
                "a row has, say ends='emitted', if how many drafts it accepts, ends='accepted'"
            )
        return answer, None
    if not pair:
        raise UnusableSubject(
            f"it returned {type_and_shape(answer)} and ends is {ends!r}, "
            f"expected (tokens, number of {_counted(kernel)})"
        )
    tokens, numbers = answer
    return tokens, numbers


def _counted(kernel: Kernel) -> str:
    return {"accepted": "accepted drafts"}.get(kernel.convention.ends, "tokens")


def _check_whole(values: Any, name: str, shape: tuple[int, ...]) -> None:
    if not is_array_api_obj(values):
        raise UnusableSubject(f"it returned {type_and_shape(values)}, expected {name} as an array {list(shape)}")
    if tuple(values.shape) != shape:
        raise UnusableSubject(f"it returned {name} of shape {list(values.shape)}, expected {list(shape)}")
    if not array_namespace(values).isdtype(values.dtype, "integral"):
        raise UnusableSubject(f"it returned {name} of {values.dtype}, expected integers")
