"""Planted defects of batched kernels: each the smallest change of a right one, and the checks that must see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from test_support.kernels.kernels import RIGHT, decide, emitted, flat, full, inverse_cdf, race, weights

BLOCK = 128


class Planted(NamedTuple):
    """A kernel with a planted bug, and the check that must refute it."""

    kernel: Any
    seen_by: str
    """The check that names it."""
    convention: Mapping[str, Any] = {}
    says: str = ""
    """Words of the counterexample."""


def with_parts(**parts):
    """Return a kernel for rows of different lengths with some parts of ``decide`` replaced."""

    def kernel(p, q, drafts, lengths, accept_uniforms, final_uniforms):
        return decide(p, q, drafts, lengths, accept_uniforms, final_uniforms, RIGHT._replace(**parts))

    return kernel


def last_block_lost(p, q, drafts, accept_uniforms, final_uniforms):
    """Planted bug: the loop over blocks of the vocabulary ends one block early."""
    cut = p.copy()
    if p.shape[-1] > BLOCK:
        cut[..., (p.shape[-1] - 1) // BLOCK * BLOCK :] = 0

    def last(p, q, accepted, lengths):
        return weights(cut, q, accepted, lengths)

    return decide(p, q, drafts, full(drafts), accept_uniforms, final_uniforms, RIGHT._replace(weights=last))


def block_begins_again(rows, uniforms):
    """Planted bug: the cumulative sum restarts at every block of the vocabulary.

    A share of the total that exceeds the mass of every block is never reached.
    """
    cumulative = np.concatenate(
        [rows[:, i : i + BLOCK].astype(np.float64).cumsum(axis=1) for i in range(0, rows.shape[1], BLOCK)], axis=1
    )
    beyond = (cumulative > uniforms[:, None] * rows.sum(axis=1, keepdims=True)) & (rows > 0)
    return np.where(beyond.any(axis=1), beyond.argmax(axis=1), rows.shape[1] - 1)


def likeliest_of_a_late_block(rows, uniforms):
    """Planted bug: the block is drawn, but in every block except the first the likeliest token is taken."""
    drawn = inverse_cdf(rows, uniforms)
    likeliest = [first + rows[row, first : first + BLOCK].argmax() for row, first in enumerate(drawn // BLOCK * BLOCK)]
    return np.where(drawn < BLOCK, drawn, likeliest)


def last_row_ignored(p, q, drafts, accept_uniforms, final_uniforms):
    """Planted bug: the number of blocks of 32 rows is rounded down."""
    answer = decide(p, q, drafts, full(drafts), accept_uniforms, final_uniforms)
    done = max(len(drafts) // 32 * 32, min(len(drafts), 31))
    answer[done:] = -1
    return answer


def lengths_of_the_row_before(p, q, drafts, lengths, accept_uniforms, final_uniforms):
    """Planted bug: the number of drafts is that of the row before."""
    return decide(p, q, drafts, np.minimum(np.roll(lengths, 1), drafts.shape[1]), accept_uniforms, final_uniforms)


def begins_with_its_own_end(p, q, drafts, cu_num_draft_tokens, accept_uniforms, final_uniforms):
    """Planted bug: the start of a row's coins is read from the next row's entry."""
    moved = np.roll(accept_uniforms, -int(cu_num_draft_tokens[0]))
    return flat(p, q, drafts, cu_num_draft_tokens, moved, final_uniforms)


def padding_is_drafted(p, q, drafts, lengths, accept_uniforms, final_uniforms):
    """Planted bug: padding is judged like drafts; as an index, -1 is the last token."""
    return decide(
        p, q, drafts, full(drafts), accept_uniforms, final_uniforms, RIGHT._replace(accepts=index_as_it_is(drafts))
    )


def index_as_it_is(drafts):
    def accepts(p, q, _, coins, i):
        rows = np.arange(len(drafts))
        return coins[:, i] * q[rows, i, drafts[:, i]] < p[rows, i, drafts[:, i]]

    return accepts


def bonus_at_a_rejection(p, q, accepted, lengths):
    """Planted bug: the last token is drawn from the bonus row even after a rejection."""
    return p[np.arange(len(accepted)), lengths]


def replaced_from_p(p, q, accepted, lengths):
    """Planted bug: the replacement is drawn from p."""
    return p[np.arange(len(accepted)), accepted]


def residual_of_the_next_row(p, q, accepted, lengths):
    """Planted bug: the residual is computed with the next row of q."""
    return weights(p, np.roll(q, -1, axis=1), accepted, lengths)


def first_coin_for_all(p, q, drafts, coins, i):
    """Planted bug: the first coin decides every draft."""
    return RIGHT.accepts(p, q, drafts, np.broadcast_to(coins[:, :1], coins.shape), i)


def accepts_a_little_less(p, q, drafts, coins, i):
    """Planted bug: the accept ratio is lowered by 1/200."""
    return RIGHT.accepts(0.995 * p, q, drafts, coins, i)


def rejects_everything(p, q, drafts, lengths, accept_uniforms, final_uniforms):
    """Planted bug: every draft is rejected and one token of p emitted per round: lossless, and useless."""
    nothing = np.zeros(len(drafts), dtype=np.int64)
    return emitted(drafts, nothing, inverse_cdf(p[:, 0], final_uniforms))


def coin_for_the_last_draw(p, q, drafts, accept_uniforms, final_uniforms):
    """Planted bug: the first coin also draws the last token."""
    return decide(p, q, drafts, full(drafts), accept_uniforms, accept_uniforms[:, 0])


def equal_is_enough(p, q, drafts, coins, i):
    """Planted bug: accepts if ``u q <= p``, so a coin of exactly 0 accepts a token that p excludes."""
    rows = np.arange(len(drafts))
    return coins[:, i] * q[rows, i, drafts[:, i]] <= p[rows, i, drafts[:, i]]


def empty_residual_is_the_last_token(p, q, accepted, lengths):
    """Planted bug: where the residual is zero, the last token of the vocabulary is emitted."""
    found = weights(p, q, accepted, lengths)
    mine, rows = p[np.arange(len(accepted)), accepted], np.arange(len(accepted))
    theirs = q[rows, np.minimum(accepted, q.shape[1] - 1)]
    empty = (accepted < lengths) & ~(mine > theirs).any(axis=1)
    return np.where(empty[:, None], np.eye(p.shape[-1], dtype=p.dtype)[-1], found)


def single_precision_runs_out(rows, uniforms):
    """Planted bug: the cumulative sum is float32 and its total another sum, so a share near 1 is never reached."""
    cumulative, total = rows.astype(np.float32).cumsum(axis=1), rows[:, ::-1].astype(np.float32).cumsum(axis=1)[:, -1:]
    beyond = cumulative > uniforms[:, None].astype(np.float32) * total
    return np.where(beyond.any(axis=1), beyond.argmax(axis=1), rows.shape[1] - 1)


def writes_into_p(p, q, drafts, accept_uniforms, final_uniforms):
    """Planted bug: the residual overwrites p."""
    answer = decide(p, q, drafts, full(drafts), accept_uniforms, final_uniforms)
    p[:, :-1] -= q
    return answer


def buffer_of_the_call_before():
    """Planted bug: all calls with one shape return the same array."""
    buffers = {}

    def kernel(p, q, drafts, accept_uniforms, final_uniforms):
        answer = decide(p, q, drafts, full(drafts), accept_uniforms, final_uniforms)
        buffer = buffers.setdefault(answer.shape, np.empty_like(answer))
        buffer[:] = answer
        return buffer

    return kernel


def stale_out(p, q, drafts, accept_uniforms, final_uniforms, out, out_lengths):
    """Planted bug: the drafts and their number are written, but the place of the last token keeps its old value."""
    answer = decide(p, q, drafts, full(drafts), accept_uniforms, final_uniforms)
    count = (answer != -1).sum(axis=1)
    np.copyto(out[:, :-1], answer[:, :-1], where=np.arange(answer.shape[1] - 1) < count[:, None] - 1)
    out_lengths[:] = count


def noise_of_the_first_row(p, q, drafts, accept_uniforms, noise):
    """Planted bug: every row uses the noise of the first row."""
    return decide(p, q, drafts, full(drafts), accept_uniforms, noise[:1], RIGHT._replace(last=race))


def race_of_p(p, q, drafts, accept_uniforms, noise):
    """Planted bug: the race is for p instead of the residual."""
    return decide(
        p, q, drafts, full(drafts), accept_uniforms, noise, RIGHT._replace(weights=replaced_from_p, last=race)
    )


def race_of_squares(p, q, drafts, accept_uniforms, noise):
    """Planted bug: the weights of the race are squared."""
    return decide(p, q, drafts, full(drafts), accept_uniforms, noise, RIGHT._replace(last=lambda w, e: race(w * w, e)))


PLANTED = {
    "last block lost": Planted(last_block_lost, "law_is_target"),
    "block begins again": Planted(with_parts(last=block_begins_again), "law_is_target"),
    "likeliest of a late block": Planted(with_parts(last=likeliest_of_a_late_block), "law_is_target"),
    "last row ignored": Planted(last_row_ignored, "answers_are_rounds", says="row 33 of 33 emits nothing"),
    "lengths of the row before": Planted(lengths_of_the_row_before, "rows_are_independent"),
    "begins with its own end": Planted(begins_with_its_own_end, "rows_are_independent"),
    "padding is drafted": Planted(padding_is_drafted, "answers_are_rounds"),
    "bonus at a rejection": Planted(with_parts(weights=bonus_at_a_rejection), "law_is_target"),
    "replaced from p": Planted(with_parts(weights=replaced_from_p), "law_is_target"),
    "residual of the next row": Planted(with_parts(weights=residual_of_the_next_row), "law_is_target"),
    "first coin for all": Planted(with_parts(accepts=first_coin_for_all), "law_is_target"),
    "accepts a little less": Planted(with_parts(accepts=accepts_a_little_less), "law_is_target"),
    "rejects everything": Planted(rejects_everything, "acceptance_is_optimal"),
    "coin for the last draw": Planted(coin_for_the_last_draw, "law_is_target"),
    "equal is enough": Planted(with_parts(accepts=equal_is_enough), "support_at_boundary_draws"),
    "empty residual": Planted(with_parts(weights=empty_residual_is_the_last_token), "support_at_rounded_rows"),
    "single precision runs out": Planted(with_parts(last=single_precision_runs_out), "support_at_rounded_rows"),
    "writes into p": Planted(writes_into_p, "inputs_unchanged"),
    "buffer of the call before": Planted(buffer_of_the_call_before(), "calls_repeat"),
    "stale out": Planted(stale_out, "answers_are_rounds", {"ends": "emitted"}),
    "noise of the first row": Planted(noise_of_the_first_row, "rows_are_independent", {"recovery": "exponential"}),
    "race of p": Planted(race_of_p, "law_is_target", {"recovery": "exponential"}),
    "race of squares": Planted(race_of_squares, "law_is_target", {"recovery": "exponential"}),
}
