"""Numbers that are sorted before they are compared, and buffers that are overwritten after their use."""

from __future__ import annotations

import heapq
import math
import random

import numpy as np
import torch

from test_support.idioms.idiom import coin, count, token, verifier

RNG = np.random.default_rng(0)


def _below_of_middle(keep):
    """Return the value that the middle one of three uniforms is below with probability ``keep``."""
    return 0.5 - math.sin(math.asin(1 - 2 * keep) / 3)


@coin("random", wrong=("** 2", "* 1"))
def larger_of_two(p, q):
    """The square of the larger of two uniforms is uniform."""
    return max(random.random(), random.random()) ** 2 < p / q


@coin("random", wrong=("(1 - min(random.random(), random.random())) ** 2", "1 - min(random.random(), random.random())"))
def smaller_of_two(p, q):
    """The square of 1 minus the smaller of two uniforms is uniform."""
    return (1 - min(random.random(), random.random())) ** 2 < p / q


@coin("random", wrong=("_below_of_middle(keep)", "keep"))
def middle_of_three(p, q):
    """The middle one of three sorted uniforms, by its distribution function."""
    keep = min(1.0, p / q)
    return sorted([random.random(), random.random(), random.random()])[1] < _below_of_middle(keep)


@coin("NumPy", wrong=("_below_of_middle(keep)", "keep"))
def median(p, q):
    """The median of three in NumPy."""
    keep = min(1.0, p / q)
    return bool(np.median(RNG.random(3)) < _below_of_middle(keep))


@coin("random", wrong=("** 4", "** 3"))
def largest_of_a_heap(p, q):
    """The largest of four uniforms in a heap."""
    return heapq.nlargest(1, [random.random() for _ in range(4)])[0] ** 4 < p / q


@coin("random", wrong=("2 * min(", "min("))
def sooner_of_two(p, q):
    """Twice the smaller of two exponential times is an exponential time."""
    return math.exp(-2 * min(random.expovariate(1.0), random.expovariate(1.0))) < p / q


@coin("torch", wrong=("u.amax() ** 3", "u.amax() ** 2"))
def largest_of_a_row(p, q):
    """The third power of the largest of three uniforms."""
    u = torch.rand(3, dtype=torch.float64)
    return bool(u.amax() ** 3 < p / q)


@count("torch", wrong=("kept = u < ratio", "kept = u * u < ratio"))
def ratios_written_over(p, q):
    """The ratios are overwritten after the mask is computed."""
    ratio, u = (p / q).clone(), torch.rand(len(p), dtype=p.dtype)
    kept = u < ratio
    ratio.fill_(0.0)
    return kept.long().cumprod(0).sum()


@count("torch", wrong=("kept = u < p / q", "kept = u < p"))
def uniforms_drawn_again(p, q):
    """The uniforms are drawn again after the mask is computed."""
    u = torch.empty(len(p), dtype=p.dtype).uniform_()
    kept = u < p / q
    u.uniform_()
    return kept.long().cumprod(0).sum()


@token("torch", wrong=("(w / noise).argmax()", "(w / noise).argmin()"))
def noise_written_over(w):
    """The noise is overwritten after the race, for the next round."""
    noise = torch.empty_like(w).exponential_()
    best = (w / noise).argmax()
    noise.fill_(1.0)
    return best


@token("torch", wrong=("multinomial(w, 1)", "multinomial(w.fill_(1.0), 1)"))
def weights_written_over(w):
    """The weights are overwritten after the token is drawn."""
    w = w.clone()
    found = torch.multinomial(w, 1)
    w.fill_(1.0)
    return found


@token("torch", wrong=("tokens.to(torch.int16)", "tokens.bool()"))
def token_of_few_bits(w):
    """The token is stored in integers of other sizes."""
    tokens = torch.multinomial(w, 1)
    return tokens.to(torch.int16).to(torch.int32).long()


@token("NumPy", wrong=("RNG.random() * 2**30", "RNG.random() ** 2 * 2**30"))
def uniform_on_a_grid(w):
    """A uniform on a grid of 30 bits, looked up."""
    u = np.floor(RNG.random() * 2**30) / 2**30
    return np.searchsorted(w.cumsum() / w.sum(), u, side="right")


@verifier("torch", wrong=("torch.where(kept, gamma, places)", "torch.where(~kept, gamma, places)"))
def no_branches(p, q, draft_tokens):
    """No branches: the first rejection is the smallest index, and all residuals are computed."""
    gamma, places = len(draft_tokens), torch.arange(len(draft_tokens))
    kept = torch.rand(gamma, dtype=p.dtype) < p[places, draft_tokens] / q[places, draft_tokens]
    number = torch.where(kept, gamma, places).min()
    left = (p - torch.nn.functional.pad(q, (0, 0, 0, 1))).clamp(min=0)
    left = torch.where(left.sum(-1, keepdim=True) > 0, left, p)
    last = (left / torch.empty_like(left).exponential_()).argmax(-1)
    everywhere = torch.arange(gamma + 1)
    found = torch.where(everywhere == number, last, torch.nn.functional.pad(draft_tokens, (0, 1)))
    return torch.where(everywhere > number, -1, found)
