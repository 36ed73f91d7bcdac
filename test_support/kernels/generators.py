"""Kernels with a generator inside, keyed by seed and offset: right ones, and ones with a planted bug."""

from __future__ import annotations

import numpy as np

from test_support.kernels.kernels import decide, full

MIX, ADD = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x9E3779B97F4A7C15)
LAST = np.uint64(0x94D049BB133111EB)


def mixed(x):
    """Return x mixed by the finaliser of splitmix64."""
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * MIX
        x = (x ^ (x >> np.uint64(27))) * LAST
        return x ^ (x >> np.uint64(31))


def uniforms(seed, offset, rows, columns):
    """Return uniforms ``[rows, columns]`` in [0, 1); each (seed, offset, row, column) has its own number."""
    with np.errstate(over="ignore"):
        key = mixed(mixed(np.uint64(seed) + ADD) + np.uint64(offset) * ADD)
        row = mixed(key + (np.arange(rows, dtype=np.uint64) + np.uint64(1)) * ADD)
        column = np.arange(1, columns + 1, dtype=np.uint64) * ADD
        return (mixed(row[:, None] + column) >> np.uint64(11)) * 2.0**-53


def keyed(p, q, drafts, seed, offset):
    """Right kernel, keyed by seed and offset."""
    u = uniforms(seed, offset, len(drafts), drafts.shape[1] + 1)
    return decide(p, q, drafts, full(drafts), u[:, :-1], u[:, -1])


def rows_in_pairs(p, q, drafts, seed, offset):
    """Planted bug: two neighbouring rows share a stream."""
    u = np.repeat(uniforms(seed, offset, (len(drafts) + 1) // 2, drafts.shape[1] + 1), 2, axis=0)[: len(drafts)]
    return decide(p, q, drafts, full(drafts), u[:, :-1], u[:, -1])


def lanes(p, q, drafts, seed, offset):
    """Planted bug: rows 128 apart share a stream."""
    u = uniforms(seed, offset, 128, drafts.shape[1] + 1)[np.arange(len(drafts)) % 128]
    return decide(p, q, drafts, full(drafts), u[:, :-1], u[:, -1])


def one_for_all(p, q, drafts, seed, offset):
    """Planted bug: all rows of a call share one stream."""
    u = np.broadcast_to(uniforms(seed, offset, 1, drafts.shape[1] + 1), (len(drafts), drafts.shape[1] + 1))
    return decide(p, q, drafts, full(drafts), u[:, :-1], u[:, -1])


def overlapping(p, q, drafts, seed, offset):
    """Planted bug: the stream of a row begins one number after that of the row before.

    So coin 2 of a row is coin 1 of the next row.
    """
    width = drafts.shape[1] + 1
    line = uniforms(seed, offset, 1, len(drafts) + width)[0]
    u = np.lib.stride_tricks.sliding_window_view(line, width)[: len(drafts)]
    return decide(p, q, drafts, full(drafts), u[:, :-1], u[:, -1])


def offset_ignored(p, q, drafts, seed, offset):
    """Planted bug: the offset is ignored, so every call uses the same numbers."""
    return keyed(p, q, drafts, seed, 0)


def next_offset_is_next_row(p, q, drafts, seed, offset):
    """Planted bug: the offset is added to the row, so a call reads the previous call's streams, shifted by one row."""
    u = uniforms(seed, 0, len(drafts) + offset, drafts.shape[1] + 1)[offset:]
    return decide(p, q, drafts, full(drafts), u[:, :-1], u[:, -1])


def seed_and_offset_added(p, q, drafts, seed, offset):
    """Planted bug: the key is seed + offset, so the next seed begins where this one is after one call."""
    return keyed(p, q, drafts, seed + offset, 0)


def seed_ignored(p, q, drafts, seed, offset):
    """Planted bug: the seed is ignored."""
    return keyed(p, q, drafts, 0, offset)


def one_coin(p, q, drafts, seed, offset):
    """Planted bug: one coin decides every draft of a row."""
    u = uniforms(seed, offset, len(drafts), 2)
    return decide(p, q, drafts, full(drafts), np.repeat(u[:, :1], drafts.shape[1], axis=1), u[:, 1])


def coin_draws_the_last(p, q, drafts, seed, offset):
    """Planted bug: the coin of the first draft also draws the last token."""
    u = uniforms(seed, offset, len(drafts), drafts.shape[1])
    return decide(p, q, drafts, full(drafts), u, u[:, 0])


def coin_before_replaces(p, q, drafts, seed, offset):
    """Planted bug: the replacement of the second draft is drawn with the coin that accepted the first."""
    u = uniforms(seed, offset, len(drafts), drafts.shape[1] + 1)
    accepted = (decide(p, q, drafts, full(drafts), u[:, :-1], u[:, -1]) >= 0).sum(1) - 1
    again = (accepted == 1) & (drafts.shape[1] > 1)
    return decide(p, q, drafts, full(drafts), u[:, :-1], np.where(again, u[:, 0], u[:, -1]))


def coarse(p, q, drafts, seed, offset):
    """Planted bug: uniforms have six bits (multiples of 1/64), while the law has multiples of 1/256."""
    u = np.floor(uniforms(seed, offset, len(drafts), drafts.shape[1] + 1) * 64) / 64
    return decide(p, q, drafts, full(drafts), u[:, :-1], u[:, -1])


def a_little_less(p, q, drafts, seed, offset):
    """Planted bug: coins are multiplied by 1 + 1/64."""
    u = uniforms(seed, offset, len(drafts), drafts.shape[1] + 1)
    return decide(p, q, drafts, full(drafts), u[:, :-1] * (1 + 2.0**-6), u[:, -1])


def global_generator(p, q, drafts):
    """Right kernel that draws from NumPy's global generator."""
    u = np.random.random(  # noqa: NPY002 - the global one is what is looked at
        (len(drafts), drafts.shape[1] + 1)
    )
    return decide(p, q, drafts, full(drafts), u[:, :-1], u[:, -1])


def reseeded(p, q, drafts):
    """Planted bug: every call seeds the global generator."""
    np.random.seed(7)  # noqa: NPY002 - as above
    return global_generator(p, q, drafts)
