"""Chain verifiers of whole batches without data-dependent branches, with the uniforms as arguments.

``verify_batched`` is speculative sampling (Leviathan et al. 2211.17192, Algorithm 1; Chen et al. 2302.01318, Algorithm
2), ``greedy_batched`` its greedy form (2211.17192, Section 2.2). Row b has the result of
``reference.verifiers.speculative_sampling`` (or ``greedy_match``) if the draws of that function are looked up by
inverse CDF: ``accept_uniforms[b, i]`` decides draft i, and ``final_uniforms[b]`` the residual or bonus token, of which
a row has one.

Every array namespace of array-api-compat is supported, on any device. No Python branch depends on data, so
``torch.compile`` accepts a verifier as a whole (``fullgraph=True``). It prints a warning about a cached function, the
look-up of the array namespace; that is harmless, because its result depends only on the array's type.

Precision. Every comparison, difference and sum is float64, whatever the inputs; the rows of p and q that are used are
widened first. A cumulative sum over V entries, added in any order, then has an error of at most V 1.1e-16 of its total:
2e-11 for 150 000 tokens. A float32 sum has steps of 6e-8 near 1; rarer tokens would lose their interval or get their
neighbour's. Uniforms should be float64 too, because 24 random bits would skip such tokens. A result differs from exact
arithmetic only if a uniform is within these roundings of a boundary between two outcomes. There, a device whose scan
adds in no fixed order may return different results in two runs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from array_api_compat import array_namespace

from .pmf import check_same_library
from .validation import argument_error

BLOCKS = 128
"""Number of blocks into which a long row is cut; the block sums are searched first. It divides usual vocabulary sizes.
"""
SHORT = 8 * BLOCKS
"""A row with fewer tokens than this is searched as one block."""


class Batch(NamedTuple):
    """The result of a batch of verifications: the ``emitted`` tokens and the number of ``accepted`` drafts of each row.

    Both are int64 arrays on the device of the inputs.
    """

    emitted: Any
    """``[B, gamma + 1]``: the accepted drafts of each row, then one further token, then padding with -1."""
    accepted: Any
    """``[B]``: the number of accepted drafts of each row, 0 to ``lengths[b]``."""


def verify_batched(p: Any, q: Any, draft_tokens: Any, lengths: Any, accept_uniforms: Any, final_uniforms: Any) -> Batch:
    """Accept drafts while ``u q(x) < p(x)``; emit from ``(p - q)+`` where one is rejected, else from the last row of p.

    Args:
        p: ``[B, gamma + 1, V]``, row i the target's pmf after i drafts. Arrays are floats of any width, of one library.
        q: ``[B, gamma, V]``, row i the pmf that draft i was drawn from.
        draft_tokens: ``[B, gamma]`` integers.
        lengths: ``[B]`` integers in 0..gamma, the number of drafts of each row. Entries at or after this position are
            ignored, except row ``lengths[b]`` of p: padding may be -1 or NaN.
        accept_uniforms: ``[B, gamma]`` in [0, 1): u of each draft.
        final_uniforms: ``[B]`` in [0, 1): u of the last draw, which takes the first token whose cumulative mass exceeds
            u times the total.

    Returns:
        The batch. A token of mass 0 is never emitted, whatever rounding does. Where the residual is 0 everywhere, the
        draw is from p.

    Raises:
        ValueError: If the shapes do not fit together, or the arrays are of several libraries. Values are not validated:
            a drafted id outside the vocabulary is rejected, and a last row without a positive entry emits -1.
    """
    floats = {"p": p, "q": q, "accept_uniforms": accept_uniforms, "final_uniforms": final_uniforms}
    check_same_library(**floats)
    rows, gamma, vocabulary = _check_shapes(p, draft_tokens, lengths)
    xp = array_namespace(p)
    _check("q", q, (rows, gamma, vocabulary))
    _check("accept_uniforms", accept_uniforms, (rows, gamma))
    _check("final_uniforms", final_uniforms, (rows,))
    _check_kinds(xp, "real floating", **floats)
    row, position = xp.arange(rows, device=p.device), xp.arange(gamma, device=p.device)[None, :]
    drafted = (position < lengths[:, None]) & (draft_tokens >= 0) & (draft_tokens < vocabulary)
    token = xp.where(drafted, draft_tokens, 0)
    p_token = xp.astype(p[row[:, None], position, token], xp.float64)
    q_token = xp.astype(q[row[:, None], position, token], xp.float64)
    uniform = xp.astype(accept_uniforms, xp.float64)
    accepted = _leading(xp, drafted & (uniform * q_token < p_token))

    final = xp.astype(p[row, accepted, :], xp.float64)
    if not gamma:
        return _emitted(xp, draft_tokens, accepted, _drawn(xp, final, final_uniforms))
    left = final - xp.astype(q[row, xp.where(accepted < gamma, accepted, 0), :], xp.float64)
    residual = xp.maximum(left, xp.zeros_like(left))
    return _emitted(xp, draft_tokens, accepted, _drawn(xp, final, final_uniforms, residual, accepted < lengths))


def greedy_batched(p: Any, draft_tokens: Any, lengths: Any) -> Batch:
    """Accept drafts while they are the argmax of their row; emit the argmax of the row after them.

    ``p`` ``[B, gamma + 1, V]`` are pmfs or logits; ties go to the lowest id. ``draft_tokens`` and ``lengths`` are as in
    ``verify_batched``. Raises ``ValueError`` for shapes that do not fit and arrays of several libraries.
    """
    rows, gamma, _ = _check_shapes(p, draft_tokens, lengths)
    xp = array_namespace(p)
    best = xp.argmax(p, axis=-1)
    drafted = xp.arange(gamma, device=p.device)[None, :] < lengths[:, None]
    accepted = _leading(xp, drafted & (draft_tokens == best[:, :gamma]))
    return _emitted(xp, draft_tokens, accepted, best[xp.arange(rows, device=p.device), accepted])


def inverse_cdf_batched(weights: Any, uniforms: Any) -> Any:
    """Return the token that inverse CDF at ``uniforms`` ``[B]`` selects in each row of ``weights`` ``[B, V]``: int64.

    Rows need not be normalised; sums are float64. A token without weight is never returned; a row without any positive
    weight returns -1. Raises ``ValueError`` for shapes that do not fit and arrays of two libraries.
    """
    check_same_library(weights=weights, uniforms=uniforms)
    if not hasattr(weights, "shape"):
        raise argument_error("weights", weights, "an array [batch, vocabulary]")
    xp = array_namespace(weights)
    if weights.ndim != 2 or weights.shape[1] == 0:
        raise ValueError(f"weights has shape {tuple(weights.shape)}, expected [batch, vocabulary]")
    _check("uniforms", uniforms, (weights.shape[0],), "weights")
    return _drawn(xp, xp.astype(weights, xp.float64), uniforms)


def _drawn(xp: Any, weights: Any, uniforms: Any, residual: Any = None, rejected: Any = None) -> Any:
    """Return the token that inverse CDF at ``uniforms`` ``[B]`` selects in each row: int64 ``[B]``, -1 without weight.

    A row is drawn from ``residual`` if it is True in ``rejected`` and its residual has weight, else from ``weights``;
    both are ``[B, V]``. Without ``residual``, every row is drawn from ``weights``. ``xp`` is the array namespace.
    """
    row, uniforms = xp.arange(weights.shape[0], device=weights.device), xp.astype(uniforms, xp.float64)
    blocks = _in_blocks(xp, weights)
    sums = xp.sum(blocks, axis=-1)
    if residual is not None:
        others = _in_blocks(xp, residual)
        more = xp.sum(others, axis=-1)
        replaced = (rejected & xp.any(more > 0, axis=-1))[:, None]
        sums = xp.where(replaced, more, sums)
    cumulative = xp.cumulative_sum(sums, axis=-1)
    bounds = uniforms[:, None] * cumulative[:, -1:]
    block = _first_beyond(xp, sums, cumulative, bounds)
    at = xp.where(block < 0, 0, block)
    inside = blocks[row, at, :]
    if residual is not None:
        inside = xp.where(replaced, others[row, at, :], inside)
    before = xp.where(at > 0, cumulative[row, at - 1], 0.0)[:, None]
    token = _first_beyond(xp, inside, before + xp.cumulative_sum(inside, axis=-1), bounds)
    return xp.where(token < 0, -1, at * blocks.shape[-1] + token)


def _in_blocks(xp: Any, weights: Any) -> Any:
    """Return ``weights`` ``[B, V]`` as ``[B, blocks, block size]``, padded with zeros at the end.

    ``xp`` is the array namespace.
    """
    rows, vocabulary = weights.shape
    blocks = 1 if vocabulary < SHORT else BLOCKS
    behind = -vocabulary % blocks
    if behind:
        weights = xp.concat([weights, xp.zeros((rows, behind), dtype=xp.float64, device=weights.device)], axis=-1)
    return xp.reshape(weights, (rows, blocks, (vocabulary + behind) // blocks))


def _first_beyond(xp: Any, weights: Any, cumulative: Any, bounds: Any) -> Any:
    """Return the first position of each row with positive weight and a cumulative sum above the row's bound.

    ``cumulative`` has the cumulative sums of ``weights``, ``bounds`` one bound for each row. Without such a position it
    is the last one with positive weight, or -1. ``xp`` is the array namespace.
    """
    ids = xp.arange(weights.shape[-1], dtype=xp.int64, device=weights.device)[None, :]
    last = xp.max(xp.where(weights > 0, ids, -1), axis=-1)
    return xp.min(xp.where((cumulative > bounds) & (weights > 0), ids, last[:, None]), axis=-1)


def _leading(xp: Any, keep: Any) -> Any:
    """Return for each row of ``keep`` the number of its leading entries that are true.

    ``xp`` is the array namespace.
    """
    return xp.sum(xp.cumulative_sum(xp.astype(~keep, xp.int64), axis=-1) == 0, axis=-1, dtype=xp.int64)


def _emitted(xp: Any, draft_tokens: Any, accepted: Any, final: Any) -> Batch:
    """Return the result of the batch, in which each row has its accepted drafts, its final token, and padding.

    ``draft_tokens`` ``[B, gamma]`` are the drafts, ``accepted`` ``[B]`` their accepted numbers, ``final`` ``[B]`` the
    tokens after them. ``xp`` is the array namespace.
    """
    final = xp.astype(final, xp.int64)[:, None]
    drafts = xp.concat([xp.astype(draft_tokens, xp.int64), final], axis=1)
    behind = xp.arange(drafts.shape[1], device=drafts.device)[None, :] - accepted[:, None]
    return Batch(xp.where(behind < 0, drafts, xp.where(behind == 0, final, -1)), accepted)


def _check_shapes(p: Any, draft_tokens: Any, lengths: Any) -> tuple[int, int, int]:
    """Return B, gamma and V from the shape of ``p``, ``[B, gamma + 1, V]``.

    Raises ``ValueError`` if ``draft_tokens`` is no integer array ``[B, gamma]`` or ``lengths`` no integer array
    ``[B]``.
    """
    check_same_library(p=p, draft_tokens=draft_tokens, lengths=lengths)
    if not hasattr(p, "shape"):
        raise argument_error("p", p, "an array [batch, gamma + 1, vocabulary]")
    if p.ndim != 3 or p.shape[1] == 0 or p.shape[2] == 0:
        raise ValueError(f"p has shape {tuple(p.shape)}, expected [batch, gamma + 1, vocabulary]")
    rows, gamma, vocabulary = p.shape[0], p.shape[1] - 1, p.shape[2]
    _check("draft_tokens", draft_tokens, (rows, gamma))
    _check("lengths", lengths, (rows,))
    _check_kinds(array_namespace(p), "integral", draft_tokens=draft_tokens, lengths=lengths)
    return rows, gamma, vocabulary


def _check_kinds(xp: Any, kind: str, **arrays: Any) -> None:
    """Raise ``ValueError`` for the first of ``arrays`` whose dtype is not of ``kind``, "integral" or "real floating".

    Values are not read from the device. ``xp`` is the array namespace.
    """
    for name, values in arrays.items():
        if not xp.isdtype(values.dtype, kind):
            raise ValueError(f"{name} holds {values.dtype}, expected {'integers' if kind == 'integral' else 'floats'}")


def _check(name: str, values: Any, shape: tuple[int, ...], fits: str = "p") -> None:
    """Raise ``ValueError`` unless ``values`` is an array of this ``shape``; ``fits`` names the array that sets it."""
    if not hasattr(values, "shape"):
        raise argument_error(name, values, f"an array of shape {shape}")
    if tuple(values.shape) != shape:
        raise ValueError(f"{name} has shape {tuple(values.shape)}, expected {shape} to fit {fits}")
