"""Right batched kernels in NumPy, in the conventions that are met, and one whose parts can be planted wrong."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Parts(NamedTuple):
    """What ``decide`` is made of: each a function that a defect replaces."""

    accepts: Any
    weights: Any
    last: Any


def accepts(p, q, drafts, coins, i):
    """Whether draft i of every row is accepted, ``u q(d) < p(d)``."""
    rows = np.arange(len(drafts))
    return coins[:, i] * q[rows, i, drafts[:, i]] < p[rows, i, drafts[:, i]]


def weights(p, q, accepted, lengths):
    """What the last token of every row is drawn from: the residual at a rejection, else p; p where nothing is left."""
    rows = np.arange(len(accepted))
    mine = p[rows, accepted]
    if not q.shape[1]:
        return mine
    theirs = q[rows, np.minimum(accepted, q.shape[1] - 1)]
    excess = np.where((accepted < lengths)[:, None], np.maximum(mine - theirs, 0), mine)
    return np.where(excess.any(axis=1, keepdims=True), excess, mine)


def inverse_cdf(rows, uniforms):
    """The first token whose cumulative weight exceeds the uniform's share, of those that have weight."""
    cumulative = rows.astype(np.float64).cumsum(axis=1)
    beyond = (cumulative > uniforms[:, None].astype(np.float64) * cumulative[:, -1:]) & (rows > 0)
    last = rows.shape[1] - 1 - (rows > 0)[:, ::-1].argmax(axis=1)
    return np.where(beyond.any(axis=1), beyond.argmax(axis=1), last)


def race(rows, noise):
    """The token with the largest weight / noise."""
    return np.where(rows > 0, rows / noise, -1).argmax(axis=1)


RIGHT = Parts(accepts, weights, inverse_cdf)


def decide(p, q, drafts, lengths, coins, final, parts=RIGHT):
    """Decide every row; ``[rows, gamma + 1]`` padded with -1."""
    rows, gamma = drafts.shape
    safe = np.where(np.arange(gamma) < lengths[:, None], drafts, 0)
    accepted, alive = np.zeros(rows, dtype=np.int64), np.ones(rows, dtype=bool)
    for i in range(gamma):
        alive = alive & (i < lengths) & parts.accepts(p, q, safe, coins, i)
        accepted = accepted + alive
    token = parts.last(parts.weights(p, q, accepted, lengths), final)
    return emitted(drafts, accepted, token)


def emitted(drafts, accepted, token):
    """The accepted drafts, the last token, padding."""
    places = np.arange(drafts.shape[1] + 1)
    tokens = np.concatenate([drafts, token[:, None]], axis=1)
    tokens = np.where(places == accepted[:, None], token[:, None], tokens)
    return np.where(places > accepted[:, None], -1, tokens).astype(np.int64)


def full(drafts):
    """The lengths of rows that all have gamma drafts."""
    return np.full(len(drafts), drafts.shape[1])


def padded(flat, lengths, width, filling):
    """Flat rows of these lengths as ``[rows, width, ...]``."""
    out = np.full((len(lengths), width, *flat.shape[1:]), filling, dtype=flat.dtype)
    out[np.arange(width) < lengths[:, None]] = flat
    return out


# Conventions


def plain(p, q, drafts, accept_uniforms, final_uniforms):
    """All rows have gamma drafts."""
    return decide(p, q, drafts, full(drafts), accept_uniforms, final_uniforms)


def with_lengths(p, q, drafts, lengths, accept_uniforms, final_uniforms):
    """Rows may have fewer drafts."""
    return decide(p, q, drafts, lengths, accept_uniforms, final_uniforms)


def flat(p, q, drafts, cu_num_draft_tokens, accept_uniforms, final_uniforms, parts=RIGHT):
    """Rows one after another."""
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
    """Writes its tokens where it is told."""
    answer = plain(p, q, drafts, accept_uniforms, final_uniforms)
    np.copyto(out, answer, where=answer != -1)


def with_numbers(p, q, drafts, accept_uniforms, final_uniforms):
    """Answers tokens, anything behind them, and how many drafts each row accepts."""
    answer = plain(p, q, drafts, accept_uniforms, final_uniforms)
    return np.where(answer == -1, 7, answer), (answer != -1).sum(axis=1) - 1


def in_place_with_numbers(p, q, drafts, accept_uniforms, final_uniforms, out, out_lengths):
    """Writes its tokens, and how many of them there are, where it is told."""
    answer = plain(p, q, drafts, accept_uniforms, final_uniforms)
    np.copyto(out, answer, where=answer != -1)
    out_lengths[:] = (answer != -1).sum(axis=1)


def open_at_zero(p, q, drafts, accept_uniforms, final_uniforms):
    """For uniforms in (0, 1]: ``u q <= p``, and the first token whose cumulative weight reaches the share."""
    return plain(p, q, drafts, 1 - accept_uniforms.astype(np.float64), 1 - final_uniforms.astype(np.float64))


def exponential(p, q, drafts, accept_uniforms, noise):
    """The last token by a race of exponentials."""
    return decide(p, q, drafts, full(drafts), accept_uniforms, noise, RIGHT._replace(last=race))


def gumbel(p, q, drafts, lengths, accept_uniforms, noise):
    """The last token by Gumbel noise."""

    def last(rows, noise):
        with np.errstate(divide="ignore"):
            return (np.log(rows) + noise).argmax(axis=1)

    return decide(p, q, drafts, lengths, accept_uniforms, noise, RIGHT._replace(last=last))


def block(p, q, drafts, lengths, accept_uniforms, final_uniforms):
    """Block verification."""
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
    """Scans the vocabulary from its end: another order, the same law."""

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
