"""Verifiers of batches in the forms that projects write: correct ones, and wrong twins of them."""

from __future__ import annotations

import numpy as np
import torch


def verdict(rng, p, q, drafts, coins=None, bonus=None):
    """Decide one row: return its accepted drafts and one more token."""
    for i, token in enumerate(drafts):
        coin = rng.random() if coins is None else coins[i]
        if not coin * q[i, token] < p[i, token]:
            residual = np.maximum(p[i] - q[i], 0) if (p[i] > q[i]).any() else p[i]
            return [*drafts[:i], rng.choice(len(residual), p=residual / residual.sum())]
    last = p[len(drafts) if bonus is None else bonus]
    return [*drafts, rng.choice(len(last), p=last)]


def row_by_row(p, q, draft_tokens):
    """NumPy, a list of lists of different lengths."""
    rng = np.random.default_rng()
    return [verdict(rng, *row) for row in zip(p, q, draft_tokens.tolist(), strict=True)]


def ragged(p, q, draft_tokens, lengths):
    """NumPy, rows of different lengths, padded with -1."""
    rng = np.random.default_rng()
    emitted = np.full((len(p), p.shape[1]), -1)
    for row, length in enumerate(lengths):
        found = verdict(rng, p[row], q[row], draft_tokens[row, :length].tolist())
        emitted[row, : len(found)] = found
    return emitted


def vectorised(p, q, draft_tokens):
    """Torch, all rows and positions at once."""
    count, gamma = draft_tokens.shape
    return decided_at_once(p, q, draft_tokens, torch.full((count,), gamma), torch.rand(count, gamma))


def vectorised_ragged(p, q, draft_tokens, lengths):
    """Torch, all rows and positions at once, rows of different lengths."""
    return decided_at_once(p, q, draft_tokens, lengths, torch.rand(draft_tokens.shape))


def decided_at_once(p, q, draft_tokens, lengths, coins):
    """Accept by a cumulative product, replace by one multinomial draw for each row."""
    rows, (_, gamma) = torch.arange(len(p)), draft_tokens.shape
    drafted = torch.arange(gamma) < lengths[:, None]
    ids = draft_tokens.clamp(min=0)[..., None]
    ratio = (p[:, :-1].gather(-1, ids) / q.gather(-1, ids))[..., 0]
    accepted = ((coins < ratio) & drafted).to(torch.int64).cumprod(dim=-1).sum(-1)
    all_accepted = accepted == lengths
    residual = torch.clamp(p[rows, accepted] - q[rows, accepted.clamp(max=gamma - 1)], min=0)
    nothing = ~residual.any(-1) | all_accepted
    weights = torch.where(nothing[:, None], p[rows, accepted], residual)
    last = torch.multinomial(weights, 1)
    kept = torch.arange(gamma + 1) < accepted[:, None]
    padded = torch.cat([draft_tokens, torch.full((len(p), 1), -1)], dim=-1)
    return torch.where(kept, padded, -1).scatter(1, accepted[:, None], last)


def shared_coins(p, q, draft_tokens):
    """Wrong: all rows are decided by the same uniforms."""
    count, gamma = draft_tokens.shape
    return decided_at_once(p, q, draft_tokens, torch.full((count,), gamma), torch.rand(1, gamma))


def shared_noise(p, q, draft_tokens):
    """Wrong: all rows draw their bonus token with the same uniform."""
    rng = np.random.default_rng()
    uniform = rng.random()
    found = []
    for row, drafts in enumerate(draft_tokens.tolist()):
        *kept, last = verdict(rng, p[row], q[row], drafts)
        if len(kept) == len(drafts):
            last = int(np.searchsorted(p[row, -1].cumsum() / p[row, -1].sum(), uniform, side="right"))
        found.append([*kept, last])
    return found


def moved_up(p, q, draft_tokens):
    """Wrong: one coin is drawn for each active row, but the coins are indexed by the original row numbers.

    If the first of three rows is rejected, two coins are drawn, and the last two rows both use the second one.
    """
    rng = np.random.default_rng()
    found, on = [[] for _ in p], list(range(len(p)))
    for i in range(draft_tokens.shape[1]):
        coins = rng.random(len(on))
        for row in list(on):
            token, coin = draft_tokens[row, i], coins[min(row, len(coins) - 1)]
            kept = coin * q[row, i, token] < p[row, i, token]
            residual = np.maximum(p[row, i] - q[row, i], 0) if (p[row, i] > q[row, i]).any() else p[row, i]
            found[row].append(token if kept else rng.choice(len(residual), p=residual / residual.sum()))
            if not kept:
                on.remove(row)
    return [[*text, rng.choice(p.shape[2], p=p[row, -1])] if row in on else text for row, text in enumerate(found)]


def first_residual(p, q, draft_tokens):
    """Wrong: every replacement is drawn from the residual of the first row."""
    rng = np.random.default_rng()
    found = []
    for row, drafts in enumerate(draft_tokens.tolist()):
        mine = verdict(rng, p[row], q[row], drafts)
        residual = np.maximum(p[0, len(mine) - 1] - q[0, min(len(mine), len(drafts)) - 1], 0)
        if len(mine) <= len(drafts) and residual.sum() > 0:
            mine[-1] = rng.choice(len(residual), p=residual / residual.sum())
        found.append(mine)
    return found


def swapped(p, q, draft_tokens):
    """Wrong: the rows are returned in another order."""
    return row_by_row(p, q, draft_tokens)[::-1]


def padding_verified(p, q, draft_tokens, lengths):
    """Wrong: lengths are ignored, so the padding -1 is verified as if it were the last token."""
    drafts = np.where(draft_tokens < 0, p.shape[-1] - 1, draft_tokens)
    emitted = row_by_row(p, q, drafts)
    return [row[: length + 1] for row, length in zip(emitted, lengths, strict=True)]


def padding_emitted(p, q, draft_tokens, lengths):
    """Wrong: padding is verified like a draft, and emitted if it is accepted."""
    return row_by_row(p, q, draft_tokens)


def late_bonus(p, q, draft_tokens, lengths):
    """Wrong: the bonus token comes from the last row of p, which belongs to the longest row of the batch."""
    rng = np.random.default_rng()
    return [
        verdict(rng, p[row], q[row], draft_tokens[row, :length].tolist(), bonus=-1)
        for row, length in enumerate(lengths)
    ]


def length_of_another(p, q, draft_tokens, lengths):
    """Wrong: every row after the second has the number of drafts of the second row."""
    return ragged(p, q, np.maximum(draft_tokens, 0), [lengths[min(row, 1)] for row in range(len(lengths))])


def one_row_of_drafts(p, q, draft_tokens, lengths):
    """Wrong: the drafts of all rows are concatenated, and after a row without drafts the offset starts again at 0."""
    ends = np.cumsum(lengths)
    starts = [int(ends[row] - length) if lengths[row - 1] else 0 for row, length in enumerate(lengths)]
    joined = [np.concatenate([of[row, :length] for row, length in enumerate(lengths)]) for of in (p, q, draft_tokens)]
    found = []
    for row, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        mine, its, drafts = (of[start : start + length] for of in joined)
        found.append(verdict(np.random.default_rng(), np.array([*mine, p[row, length]]), its, drafts.tolist()))
    return found
