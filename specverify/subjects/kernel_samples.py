"""Samples of a kernel with an internal generator, drawn and counted on its own device.

A kind of row is one choice of drafts and pmfs. For each call one multinomial draw determines how many rows of each kind
there are, so the host draws nothing row by row. Which rows have which kind is drawn once. The device returns counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from specverify.base.host_arrays import host_array
from specverify.subjects.kernel import Kernel
from specverify.subjects.kernel_calls import KernelBatch, as_given, called, given_batch
from specverify.subjects.kernel_designs import Design
from specverify.subjects.kernel_rounds import ENTRIES
from specverify.subjects.seeded import seeded

MOST_SEED = 2**30
"""Seeds passed to a kernel are below twice this, so that they fit into any of its integer types."""


class Calls(NamedTuple):
    """How the sampled rows of a kernel are divided among its calls: rows per call, and seed and offset of each call."""

    rows: int = 2**18
    """The most rows of one call."""
    keys: tuple[tuple[int, int], ...] = ()
    """(number added to the seed, number of the offset) of each call, if the same rows are used in every call."""


AT_ONCE = Calls()


class KernelAnswer(NamedTuple):
    """The result of one call of a kernel on a batch of a ``Design``, in arrays of the kernel's library."""

    kinds: Any
    """``[rows]``: for each row, the index of its kind (drafts and pmfs) in ``Design.kinds``."""
    tokens: Any
    """``[rows, gamma + 1]``, in the numbering of ``in_small``."""


def answers(kernel: Kernel, design: Design, samples: int, seed: int, calls: Calls = AT_ONCE) -> Iterator[KernelAnswer]:
    """Yield the result of each call of the kernel, on rows of ``design``; ``seed`` seeds the rows and the kernel.

    A call has at most ``calls.rows`` rows.

    * If ``calls.keys`` is empty, the calls have ``samples`` rows in total, whose kinds (of ``design.kinds``) are drawn
      at random. Each call has another offset.
    * Otherwise there is one call for each key, which determines the seed and the offset. All calls get the same rows,
      at most ``samples``: one of each kind in turn, from the first kind again after the last.
    """
    rng = np.random.default_rng(seed)
    size = max(1, min(calls.rows, samples, ENTRIES // ((2 * design.gamma + 1) * design.batch.p.shape[-1])))
    order = as_given(kernel, rng.permutation(size))
    p, q, drafts, _ = given_batch(kernel, design.batch)
    keys = calls.keys or [(0, number) for number in range(-(-samples // size))]
    with seeded(seed):
        for number, key in enumerate(keys):
            if calls.keys:
                kinds = as_given(kernel, np.arange(size) % len(design.kinds))
            else:
                rows = min(size, samples - number * size)
                places = order if rows == size else as_given(kernel, rng.permutation(rows))
                kinds = _spread(kernel, rng.multinomial(rows, design.shares), places, int(rng.integers(rows)))
            mine = [kernel.xp.take(values, kinds, axis=0) for values in (p, q, drafts)]
            batch = KernelBatch(mine[0], mine[1], mine[2], _lengths(design, kinds))
            yield KernelAnswer(kinds, in_small(kernel, design, called(kernel, batch, _random(kernel, seed, *key))))


def _random(kernel: Kernel, seed: int, more: int, number: int) -> tuple[int, ...]:
    """Return the seed and the offset of call ``number``; () if they are not arguments of the kernel.

    The seed is ``seed`` plus ``more``, and the offset grows by the kernel's offset step from call to call.
    """
    if kernel.convention.uniforms == "own":
        return ()
    return seed % MOST_SEED + more, number * kernel.convention.offset_step


def _spread(kernel: Kernel, counts: Any, order: Any, turn: int) -> Any:
    """Return the index of the kind of each row of a call, as an array of the kernel's library.

    ``counts[k]`` rows have kind k. Their places follow from ``order``, a permutation of the row indices, rotated by
    ``turn``.
    """
    xp = kernel.xp
    return xp.searchsorted(as_given(kernel, counts.cumsum()), xp.roll(order, turn), side="right")


def _lengths(design: Design, kinds: Any) -> Any:
    """Return the number of drafts of each row as a NumPy array.

    ``kinds`` has the index of each row's kind in ``design``.
    """
    lengths = design.batch.lengths
    if (lengths == lengths[0]).all():
        return np.full(kinds.shape[0], lengths[0])
    return lengths[host_array(kinds)]


def in_small(kernel: Kernel, design: Design, tokens: Any) -> Any:
    """Return the ids ``tokens`` of the kernel's vocabulary in a small numbering from -1 to n.

    The n tokens with positive probability, whose ids are in ``design``, become 0 to n - 1; padding becomes -1 and any
    other token n.
    """
    xp = kernel.xp
    small = xp.where(tokens == -1, -1, len(design.ids))
    for token, identity in enumerate(design.ids):
        small = xp.where(tokens == identity, token, small)
    return small


def counted(kernel: Kernel, design: Design, samples: int, seed: int, calls: Calls = AT_ONCE) -> Any:
    """Return how often each text occurs for each kind of row, as NumPy ``[kinds, texts]``.

    ``samples`` rows of ``design`` are drawn with the seed ``seed``. ``calls`` divides them among calls of the kernel.
    ``text_of`` converts a column number to the tokens.
    """
    base = _values_of(design)
    texts = base ** (design.gamma + 1)
    total = np.zeros(len(design.kinds) * texts, dtype=np.int64)
    for kinds, tokens in answers(kernel, design, samples, seed, calls):
        key = kinds
        for i in range(design.gamma + 1):
            key = key * base + tokens[:, i] + 1
        total += host_array(binned(kernel, key, len(total))).astype(np.int64)
    return total.reshape(len(design.kinds), texts)


def binned(kernel: Kernel, keys: Any, length: int) -> Any:
    """Count how often each of ``0 .. length - 1`` occurs among ``keys``, on the device of ``kernel``."""
    if kernel.convention.library == "jax":
        return kernel.xp.bincount(keys, length=length)
    return kernel.xp.bincount(keys, minlength=length)


def _values_of(design: Design) -> int:
    """Return the number of values that a token has in the numbering of ``in_small``."""
    return len(design.ids) + 2


def text_of(key: int, design: Design) -> tuple[int, ...]:
    """Return the tokens, in the numbering of ``in_small``, that the number ``key`` encodes, without padding."""
    base = _values_of(design)
    tokens = [key // base**i % base - 1 for i in range(design.gamma, -1, -1)]
    while tokens and tokens[-1] == -1:
        tokens.pop()
    return tuple(tokens)


def bits_of(kernel: Kernel, design: Design, answer: KernelAnswer) -> Any:
    """Return the outcome of the examined draw of each row in ``answer``: 0, 1, or 2 if it was not made or is unknown.

    ``design`` states for each kind of row which draw is examined (``RowKind.bit``), for example whether more than one
    draft is accepted: 1 if so, else 0. ``kernel`` determines the library of the arrays.
    """
    xp, (kinds, tokens) = kernel.xp, answer
    accepted = xp.sum(xp.astype(tokens >= 0, tokens.dtype), axis=1) - 1
    bits = 2 * xp.ones_like(kinds)
    for number, kind in enumerate(design.kinds):
        what, place = kind.bit
        if what == "accepted":
            bit, shown = accepted > place, accepted >= kind.seen
        else:
            bit, shown = tokens[:, place] == 1, (tokens[:, place] == 1) | (tokens[:, place] == 2)
        mine = (kinds == number) & shown
        bits = xp.where(mine, xp.astype(bit, bits.dtype), bits)
    return bits
