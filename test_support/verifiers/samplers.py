"""Rejection samplers in the forms that projects write, in torch and NumPy: right at every draw, with wrong variants.

Usual mistakes are a coin that is compared with ``<=``, and a residual that is divided by its sum without a test for 0.
Each sampler takes both parts as arguments, so that the right sampler and the wrong ones are the same code.
"""

from __future__ import annotations

import random

import numpy as np
import torch

# What replaces a rejected draft


def owed(p, q):
    """Return the residual, or p if rounding makes the residual zero."""
    left = torch.clamp(p - q, min=0)
    total = left.sum(-1, keepdim=True)
    return torch.where(total > 0, left / torch.where(total > 0, total, 1), p)


def divided(p, q):
    """Wrong: divides 0 by 0 if p is nowhere above q."""
    left = torch.clamp(p - q, min=0)
    return left / left.sum(-1, keepdim=True)


def floored(p, q):
    """Wrong: the floor makes the sum positive although the residual is zero everywhere."""
    left = torch.clamp(p - q, min=0)
    return left / torch.clamp(left.sum(-1, keepdim=True), min=1e-10)


def divided_in_float32(p, q):
    """Wrong: the rows differ in float64 but are equal in float32."""
    return divided(p.float(), q.float())


def below(coin, ratio):
    return coin < ratio


def not_above(coin, ratio):
    """Wrong: a coin of exactly 0 keeps a draft of target probability 0."""
    return coin <= ratio


# One row, in the styles of four projects


def loop(keeps=below, residual=owed, coin=lambda p: torch.rand(())):
    """Decide one position after another; draw the token with ``torch.multinomial``."""

    def verify(p, q, draft_tokens):
        for i, token in enumerate(draft_tokens.tolist()):
            if not keeps(coin(p), p[i, token] / q[i, token]):
                return [*draft_tokens[:i].tolist(), int(torch.multinomial(residual(p[i], q[i]), 1))]
        return [*draft_tokens.tolist(), int(torch.multinomial(p[-1], 1))]

    return verify


def coins_like(ratio):
    """Return uniforms in the dtype of a ratio, or in float32 for 16-bit ratios: 16-bit uniforms have few values."""
    return torch.rand_like(ratio, dtype=torch.promote_types(ratio.dtype, torch.float32))


def at_once(keeps=below, residual=owed):
    """Compare all coins at once, count the leading accepted drafts, and draw from the residual of the next row."""

    def verify(p, q, draft_tokens):
        places = torch.arange(len(draft_tokens))
        ratio = p[places, draft_tokens] / q[places, draft_tokens]
        accepted = keeps(coins_like(ratio), ratio)
        count = int(((~accepted).cumsum(dim=-1) < 1).sum())
        row = residual(p[count], q[count]) if count < len(draft_tokens) else p[count]
        return torch.cat([draft_tokens[:count], torch.multinomial(row, num_samples=1)])

    return verify


def first_rejection(keeps=below, residual=owed):
    """Find the first rejected position; draw the token there by a race of exponentials."""

    def verify(p, q, draft_tokens):
        places = torch.arange(len(draft_tokens))
        ratio = torch.minimum(p[places, draft_tokens] / q[places, draft_tokens], torch.ones(()))
        lost = (~keeps(coins_like(ratio), ratio)).nonzero()
        count = len(draft_tokens) if len(lost) == 0 else int(lost[0])
        row = p[-1] if len(lost) == 0 else residual(p[count], q[count])
        return [*draft_tokens[:count].tolist(), raced(row)]

    return verify


def raced(row):
    return int((row / torch.empty_like(row).exponential_()).argmax())


def padded_batch(keeps=below, residual=owed):
    """Decide all rows at once, with float64 coins and a replacement drawn at every position; -1 after the end."""

    def verify(p, q, draft_tokens, lengths):
        count, gamma = draft_tokens.shape
        ids = draft_tokens.clamp(min=0)[..., None]
        ratio = (p[:, :-1].gather(-1, ids) / q.gather(-1, ids))[..., 0]
        drafted = torch.arange(gamma) < lengths[:, None]
        kept = keeps(torch.rand(count, gamma, dtype=torch.float64), ratio) & drafted
        accepted = kept.to(torch.int64).cumprod(-1).sum(-1).tolist()
        emitted = torch.full((count, gamma + 1), -1)
        for row, number in enumerate(accepted):
            emitted[row, :number] = draft_tokens[row, :number]
            whole = number == int(lengths[row])
            emitted[row, number] = raced(p[row, number] if whole else residual(p[row, number], q[row, number]))
        return emitted

    return verify


def of_logits(keeps=below, residual=owed):
    """Compute softmax at a temperature, then decide one position after another."""

    def verify(target_logits, draft_logits, draft_tokens, temperature):
        p, q = (softmax(rows, temperature) for rows in (target_logits, draft_logits))
        return loop(keeps, residual)(p, q, draft_tokens)

    return verify


def softmax(logits, temperature):
    if temperature == 0:
        return torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).to(logits.dtype)
    return torch.softmax(logits / temperature, dim=-1)


# Lookups and races whose ends matter


def lookup(u, weights):
    """Return the first token whose cumulative weight is above u times the sum; it never has weight 0."""
    cumulative = weights.cumsum(-1)
    return int(torch.searchsorted(cumulative, u * cumulative[-1:], right=True))


def lookup_of_u(u, weights):
    """Wrong: a cumulative sum may end below u; the result is then the index after the last token."""
    return int(torch.searchsorted(weights.cumsum(-1), u, right=True))


def lookup_from_the_left(u, weights):
    """Wrong: a u of exactly 0 selects token 0, whatever its weight."""
    cumulative = weights.cumsum(-1)
    return int(torch.searchsorted(cumulative, u * cumulative[-1:]))


def by_lookup(find):
    """Accept by coins, and draw the token by one lookup."""

    def verify(p, q, draft_tokens):
        for i, token in enumerate(draft_tokens.tolist()):
            if not torch.rand((), dtype=p.dtype) < p[i, token] / q[i, token]:
                return [*draft_tokens[:i].tolist(), find(torch.rand(1, dtype=p.dtype), owed(p[i], q[i]))]
        return [*draft_tokens.tolist(), find(torch.rand(1, dtype=p.dtype), p[-1])]

    return verify


def by_noise(noise):
    """Accept by coins, and draw the token by a race of logarithms plus noise."""

    def verify(p, q, draft_tokens):
        for i, token in enumerate(draft_tokens.tolist()):
            if not torch.rand(()) < p[i, token] / q[i, token]:
                return [*draft_tokens[:i].tolist(), int((owed(p[i], q[i]).log() + noise(p[i])).argmax())]
        return [*draft_tokens.tolist(), int((p[-1].log() + noise(p[-1])).argmax())]

    return verify


def gumbel_of_exponentials(row):
    return -torch.log(torch.empty_like(row).exponential_())


def gumbel_of_uniforms(row):
    """Wrong if only one token is possible: at a uniform of exactly 0 its score is minus infinity, like all others."""
    return -torch.log(-torch.log(torch.rand_like(row)))


# NumPy and random


def numpy_owed(p, q):
    left = np.maximum(p - q, 0)
    return left / left.sum() if left.any() else p


def numpy_divided(p, q):
    """Wrong: divides 0 by 0, like ``divided``."""
    left = np.maximum(p - q, 0)
    return left / left.sum()


def numpy_divided_in_float32(p, q):
    """Wrong: the rows differ in float64 only, as in ``divided_in_float32``."""
    return numpy_divided(p.astype(np.float32), q.astype(np.float32)).astype(np.float64)


def numpy_loop(keeps=below, residual=numpy_owed, draw=lambda rng, row: int(rng.choice(len(row), p=row))):
    """Decide one position after another with a generator."""

    def verify(p, q, draft_tokens):
        rng = np.random.default_rng()
        for i, token in enumerate(draft_tokens.tolist()):
            if not keeps(rng.random() * q[i, token], p[i, token]):
                return [*draft_tokens[:i].tolist(), draw(rng, residual(p[i], q[i]))]
        return [*draft_tokens.tolist(), draw(rng, p[-1])]

    return verify


def gumbel(rng, row):
    with np.errstate(divide="ignore"):
        return int((np.log(row) + rng.gumbel(size=len(row))).argmax())


def race_of_all(rng, row):
    """Wrong: NumPy's exponential may be 0; with weight 0 this gives 0/0, a NaN, which ``argmax`` selects."""
    with np.errstate(all="ignore"):
        return int((row / rng.standard_exponential(len(row))).argmax())


def race_of_possible(rng, row):
    possible = np.flatnonzero(row)
    with np.errstate(divide="ignore"):
        return int(possible[(row[possible] / rng.standard_exponential(len(possible))).argmax()])


def legacy(p, q, draft_tokens):
    """Use the functions of ``np.random``, whose ``multinomial`` gives the mass lost by rounding to the last token."""
    for i, token in enumerate(draft_tokens.tolist()):
        if np.random.rand() >= p[i, token] / q[i, token]:  # noqa: NPY002 - what is tested
            return [*draft_tokens[:i].tolist(), int(np.random.choice(p.shape[1], p=numpy_owed(p[i], q[i])))]  # noqa: NPY002
    return [*draft_tokens.tolist(), int(np.random.multinomial(1, p[-1]).argmax())]  # noqa: NPY002


def standard_library(p, q, draft_tokens):
    """Use ``random.random`` and ``random.choices``."""
    for i, token in enumerate(draft_tokens.tolist()):
        if not random.random() < p[i, token] / q[i, token]:
            return [*draft_tokens[:i].tolist(), random.choices(range(len(p[i])), numpy_owed(p[i], q[i]))[0]]
    return [*draft_tokens.tolist(), random.choices(range(len(p[-1])), p[-1])[0]]
