"""Right batched kernels in NumPy, one for each calling convention, and one made of parts that a bug can replace."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Parts(NamedTuple):
    """The functions that ``decide`` consists of; a planted bug replaces one."""

    accepts: Any
    weights: Any
    last: Any


def accepts(p, q, drafts, coins, i):
    """Return for every row whether draft i is accepted, ``u q(d) < p(d)``."""
    rows = np.arange(len(drafts))
    return coins[:, i] * q[rows, i, drafts[:, i]] < p[rows, i, drafts[:, i]]


def weights(p, q, accepted, lengths):
    """Return the weights from which the last token of every row is drawn.

    They are the residual after a rejection, else p; p too where the residual is zero.
    """
    rows = np.arange(len(accepted))
    mine = p[rows, accepted]
    if not q.shape[1]:
        return mine
    theirs = q[rows, np.minimum(accepted, q.shape[1] - 1)]
    excess = np.where((accepted < lengths)[:, None], np.maximum(mine - theirs, 0), mine)
    return np.where(excess.any(axis=1, keepdims=True), excess, mine)


def inverse_cdf(rows, uniforms):
    """Return the first token of positive weight whose cumulative weight exceeds the uniform times the total."""
    cumulative = rows.astype(np.float64).cumsum(axis=1)
    beyond = (cumulative > uniforms[:, None].astype(np.float64) * cumulative[:, -1:]) & (rows > 0)
    last = rows.shape[1] - 1 - (rows > 0)[:, ::-1].argmax(axis=1)
    return np.where(beyond.any(axis=1), beyond.argmax(axis=1), last)


def race(rows, noise):
    """Return the token with the largest weight / noise."""
    return np.where(rows > 0, rows / noise, -1).argmax(axis=1)


RIGHT = Parts(accepts, weights, inverse_cdf)


def decide(p, q, drafts, lengths, coins, final, parts=RIGHT):
    """Verify every row; return the emitted tokens ``[rows, gamma + 1]``, padded with -1."""
    rows, gamma = drafts.shape
    safe = np.where(np.arange(gamma) < lengths[:, None], drafts, 0)
    accepted, alive = np.zeros(rows, dtype=np.int64), np.ones(rows, dtype=bool)
    for i in range(gamma):
        alive = alive & (i < lengths) & parts.accepts(p, q, safe, coins, i)
        accepted = accepted + alive
    token = parts.last(parts.weights(p, q, accepted, lengths), final)
    return emitted(drafts, accepted, token)


def emitted(drafts, accepted, token):
    """Return the accepted drafts, the last token and padding of every row."""
    places = np.arange(drafts.shape[1] + 1)
    tokens = np.concatenate([drafts, token[:, None]], axis=1)
    tokens = np.where(places == accepted[:, None], token[:, None], tokens)
    return np.where(places > accepted[:, None], -1, tokens).astype(np.int64)


def full(drafts):
    """Return the lengths of rows that all have gamma drafts."""
    return np.full(len(drafts), drafts.shape[1])


def padded(flat, lengths, width, filling):
    """Return concatenated rows of the given lengths as ``[rows, width, ...]``, filled up with ``filling``."""
    out = np.full((len(lengths), width, *flat.shape[1:]), filling, dtype=flat.dtype)
    out[np.arange(width) < lengths[:, None]] = flat
    return out


# Conventions


def plain(p, q, drafts, accept_uniforms, final_uniforms):
    """Right kernel for rows that all have gamma drafts."""
    return decide(p, q, drafts, full(drafts), accept_uniforms, final_uniforms)


def with_lengths(p, q, drafts, lengths, accept_uniforms, final_uniforms):
    """Right kernel for rows of different lengths."""
    return decide(p, q, drafts, lengths, accept_uniforms, final_uniforms)


def flat(p, q, drafts, cu_num_draft_tokens, accept_uniforms, final_uniforms, parts=RIGHT):
    """Right kernel for rows that are concatenated."""
    lengths = np.diff(cu_num_draft_tokens, prepend=0)
    gamma = max(int(lengths.max()), 1)
    return decide(
        padded(p, lengths + 1, gamma + 1, 0),
        padded(q, lengths, gamma, 0),
        padded(drafts, lengths, gamma, 0),
        lengths,
        padded(accept_uniforms, lengths, gamma, 0),
        final_uniforms,
        parts,
    )


def in_place(p, q, drafts, accept_uniforms, final_uniforms, out):
    """Right kernel that writes its tokens into ``out``."""
    answer = plain(p, q, drafts, accept_uniforms, final_uniforms)
    np.copyto(out, answer, where=answer != -1)


def with_numbers(p, q, drafts, accept_uniforms, final_uniforms):
    """Right kernel that also returns each row's number of accepted drafts.

    Values after the last token are arbitrary.
    """
    answer = plain(p, q, drafts, accept_uniforms, final_uniforms)
    return np.where(answer == -1, 7, answer), (answer != -1).sum(axis=1) - 1


def in_place_with_numbers(p, q, drafts, accept_uniforms, final_uniforms, out, out_lengths):
    """Right kernel that writes its tokens into ``out`` and their number into ``out_lengths``."""
    answer = plain(p, q, drafts, accept_uniforms, final_uniforms)
    np.copyto(out, answer, where=answer != -1)
    out_lengths[:] = (answer != -1).sum(axis=1)


def open_at_zero(p, q, drafts, accept_uniforms, final_uniforms):
    """Right kernel for uniforms in (0, 1].

    It accepts if ``u q <= p``, and draws the first token whose cumulative weight reaches the share.
    """
    return plain(p, q, drafts, 1 - accept_uniforms.astype(np.float64), 1 - final_uniforms.astype(np.float64))


def exponential(p, q, drafts, accept_uniforms, noise):
    """Right kernel that draws the last token by a race of exponentials."""
    return decide(p, q, drafts, full(drafts), accept_uniforms, noise, RIGHT._replace(last=race))


def gumbel(p, q, drafts, lengths, accept_uniforms, noise):
    """Right kernel that draws the last token by Gumbel noise."""

    def last(rows, noise):
        with np.errstate(divide="ignore"):
            return (np.log(rows) + noise).argmax(axis=1)

    return decide(p, q, drafts, lengths, accept_uniforms, noise, RIGHT._replace(last=last))


def block(p, q, drafts, lengths, accept_uniforms, final_uniforms):
    """Right kernel of block verification."""
    rows, gamma = drafts.shape
    row, p, q = np.arange(rows), p.astype(np.float64), q.astype(np.float64)
    safe = np.where(np.arange(gamma) < lengths[:, None], drafts, 0)
    ratio, kept = np.ones(rows), np.ones(rows)
    accepted = np.zeros(rows, dtype=np.int64)
    for i in range(gamma):
        mass, proposed = ratio * p[row, i, safe[:, i]], q[row, i, safe[:, i]]
        ratio = np.minimum(np.divide(mass, proposed, out=(mass > 0) * 1.0, where=proposed > 0), 1)
        beyond = np.maximum(ratio[:, None] * p[:, i + 1] - q[:, min(i + 1, gamma - 1)], 0).sum(axis=1)
        heads = np.divide(beyond, beyond + 1 - ratio, out=ratio.copy(), where=beyond + 1 - ratio > 0)
        heads = np.where(i + 1 == lengths, ratio, heads)
        taken = (i < lengths) & (accept_uniforms[:, i] < heads)
        accepted, kept = np.where(taken, i + 1, accepted), np.where(taken, ratio, kept)
    mine = p[row, accepted] * kept[:, None]
    theirs = q[row, np.minimum(accepted, gamma - 1)]
    excess = np.maximum(mine - theirs, 0)
    ended = (accepted == lengths) | ~excess.any(axis=1)
    return emitted(drafts, accepted, inverse_cdf(np.where(ended[:, None], mine, excess), final_uniforms))


def descending(p, q, drafts, accept_uniforms, final_uniforms):
    """Right kernel that scans the vocabulary from its end: another order, the same law."""

    def last(rows, uniforms):
        return rows.shape[1] - 1 - inverse_cdf(rows[:, ::-1], uniforms)

    return decide(p, q, drafts, full(drafts), accept_uniforms, final_uniforms, RIGHT._replace(last=last))


CONVENTIONS = {
    "plain": (plain, {}),
    "lengths": (with_lengths, {}),
    "flat": (flat, {}),
    "in place": (in_place, {}),
    "numbers": (with_numbers, {"ends": "accepted"}),
    "in place with numbers": (in_place_with_numbers, {"ends": "emitted"}),
    "(0, 1]": (open_at_zero, {"uniforms": "(0, 1]"}),
    "exponential": (exponential, {"recovery": "exponential"}),
    "gumbel": (gumbel, {"recovery": "gumbel"}),
    "block": (block, {"rule": "block"}),
    "descending": (descending, {}),
    "float64": (plain, {"dtype": "float64"}),
}
