"""Bare verifiers in the forms that projects write: four correct ones, and wrong ones whose law is known by hand."""

from __future__ import annotations

import math

import numpy as np
import torch


def owed(p, q):
    """Return the residual, or p if rounding makes the residual zero."""
    residual = torch.clamp(p - q, min=0)
    return residual if residual.any() else p


def race(p, q, draft_tokens):
    """Accept by comparing coins; draw the replacement by an exponential race."""
    for i, token in enumerate(draft_tokens.tolist()):
        if torch.rand(()) >= p[i, token] / q[i, token]:
            residual = owed(p[i], q[i])
            clock = torch.empty_like(residual).exponential_()
            return [*draft_tokens[:i].tolist(), int((residual / clock).argmax())]
    clock = torch.empty_like(p[-1])
    clock.exponential_()
    return [*draft_tokens.tolist(), int((p[-1] / clock).argmax())]


def inverse_cdf(p, q, draft_tokens):
    """Draw all coins at once, and the replacement by an inverse-CDF lookup."""
    drafted = torch.arange(len(draft_tokens))
    ratio = p[drafted, draft_tokens] / q[drafted, draft_tokens]
    accepted = int((torch.rand_like(ratio) < ratio).to(torch.int64).cumprod(dim=0).sum())
    weights = p[accepted]
    if accepted < len(draft_tokens):
        weights = owed(p[accepted], q[accepted])
    cumulative = weights.cumsum(0)
    token = torch.searchsorted(cumulative, torch.rand(1) * cumulative[-1], right=True)
    return torch.cat([draft_tokens[:accepted], token])


def unscaled_inverse_cdf(p, q, draft_tokens):
    """Wrong by rounding: if the cumulative sum ends below 1, the last token is emitted whatever its probability."""
    residual = torch.clamp(p[0] - q[0], min=0)
    first = int(draft_tokens[0])
    if torch.rand(()) < p[0, first] / q[0, first]:
        law = p[1]
        return [first, int(torch.searchsorted(law.cumsum(0), torch.rand(1)).clamp(max=len(law) - 1))]
    law = residual / residual.sum()
    return [int(torch.searchsorted(law.cumsum(0), torch.rand(1)).clamp(max=len(law) - 1))]


def log_space(p, q, draft_tokens):
    """Compare coins in logarithms and draw the replacement by the Gumbel trick; right unless a uniform is exactly 0."""
    for i, token in enumerate(draft_tokens.tolist()):
        if not torch.log(torch.rand(())) < torch.log(p[i, token]) - torch.log(q[i, token]):
            return [*draft_tokens[:i].tolist(), gumbel(owed(p[i], q[i]))]
    return [*draft_tokens.tolist(), gumbel(p[-1])]


def gumbel(weights):
    noise = -torch.log(-torch.log(torch.rand_like(weights)))
    return int((torch.log(weights) + noise).argmax())


def in_numpy(p, q, draft_tokens):
    """Do the same with a NumPy generator."""
    rng = np.random.default_rng()
    for i, token in enumerate(np.asarray(draft_tokens).tolist()):
        if not rng.random() * q[i, token] < p[i, token]:
            residual = np.maximum(p[i] - q[i], 0) if (p[i] > q[i]).any() else p[i]
            return [*draft_tokens[:i], rng.choice(len(residual), p=residual / residual.sum())]
    return [*draft_tokens, rng.choice(p.shape[1], p=p[-1])]


def reused_uniform(p, q, draft_tokens):
    """Wrong: the uniform that rejected the draft is used again for the replacement's inverse CDF."""
    for i, token in enumerate(draft_tokens.tolist()):
        uniform = torch.rand(1)
        if uniform >= p[i, token] / q[i, token]:
            residual = torch.clamp(p[i] - q[i], min=0)
            law = (residual / residual.sum()).cumsum(0)
            return [*draft_tokens[:i].tolist(), int(torch.searchsorted(law, uniform).clamp(max=len(law) - 1))]
    return [*draft_tokens.tolist(), int(torch.multinomial(p[-1], 1))]


def one_uniform(p, q, draft_tokens):
    """Wrong: one uniform decides every position."""
    uniform = torch.rand(())
    for i, token in enumerate(draft_tokens.tolist()):
        if uniform >= p[i, token] / q[i, token]:
            residual = torch.clamp(p[i] - q[i], min=0)
            return [*draft_tokens[:i].tolist(), int(torch.multinomial(residual, 1))]
    return [*draft_tokens.tolist(), int(torch.multinomial(p[-1], 1))]


def reseeded(p, q, draft_tokens):
    """Wrong: the generator is seeded again before every coin, so all positions see one uniform."""
    for i, token in enumerate(draft_tokens.tolist()):
        torch.manual_seed(7)
        if torch.rand(()) >= p[i, token] / q[i, token]:
            residual = torch.clamp(p[i] - q[i], min=0)
            return [*draft_tokens[:i].tolist(), int(torch.multinomial(residual, 1))]
    return [*draft_tokens.tolist(), int(torch.multinomial(p[-1], 1))]


def shared_clock(p, q, draft_tokens):
    """Wrong: the noise of one race decides a second one."""
    clock = torch.empty_like(p[0]).exponential_()
    first = int((p[0] / clock).argmax())
    if first == int(draft_tokens[0]):
        return [first, int((p[1] / clock).argmax())]
    return [first]


def clock_of_three(p, q, draft_tokens):
    """Wrong: draws the token of the last of three races with one noise, of which nothing reads the first two."""
    clock = torch.empty_like(p[0]).exponential_()
    return [[int((weights / clock).argmax()) for weights in (p[0], p[1], p[0] + p[1])][-1]]


def needs_value(p, q, draft_tokens):
    """Needs the value of a uniform: computes its sine."""
    return [math.floor(abs(math.sin(1e4 * torch.rand(()).item())) * p.shape[1])]


def as_a_block(p, q, draft_tokens):
    """Block verification: accepts the longest prefix by its joint ratio, which keeps more drafts than single tests."""
    rng, count, kept = np.random.default_rng(), 0, [1.0]
    for i, token in enumerate(draft_tokens):
        kept.append(min(1.0, kept[-1] * p[i, token] / q[i, token]))
    for i in range(1, len(kept)):
        owed_there = np.maximum(kept[i] * p[i] - q[i], 0).sum() if i < len(q) else kept[i]
        rest = 1 - kept[i] if i < len(q) else 1 - owed_there
        count = i if rng.random() * (owed_there + rest) < owed_there else count
    weights = np.maximum(kept[count] * p[count] - q[count], 0) if count < len(q) else p[count]
    weights = weights if weights.any() else p[count]
    return [*draft_tokens[:count], rng.choice(len(weights), p=weights / weights.sum())]


def all_of_it(p, q, draft_tokens):
    """Wrong: keeps every draft."""
    return [*draft_tokens, np.random.default_rng().choice(p.shape[1], p=p[-1])]
