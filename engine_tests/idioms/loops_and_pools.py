"""Draws that are made again until one is accepted, and numbers that are drawn before they are used."""

from __future__ import annotations

import collections
import itertools
import random

import numpy as np
import torch
from idiom import coin, count, token, verifier
from tokens_of_numpy import _alias

RNG = np.random.default_rng(0)


@coin("random", wrong=("turns % 2 == 0", "turns % 2 == 1"))
def failures_before_a_success(p, q):
    """A game of two, in turns, until one of them wins: the one who begins has the better odds, which are chosen."""
    keep, turns = min(1.0, p / q), 0
    odds = max(keep, 1 - keep)
    while random.random() >= 2 - 1 / odds:
        turns += 1
    return (turns % 2 == 0) == (keep > 0.5)


@coin("random", wrong=("u / 0.75 <", "u <"))
def number_until_it_fits(p, q):
    """Numbers until one is at most three quarters, scaled."""
    while (u := random.random()) > 0.75:
        pass
    return u / 0.75 < p / q


@token("random", wrong=("return place if", "return 0 if"))
def column_until_it_fits(w):
    """Bits until they are a column, as ``randbelow`` has it, and the part of it."""
    share, other = _alias((w / w.sum()).tolist())
    while (place := random.getrandbits(len(w).bit_length())) >= len(w):
        pass
    return place if random.random() < share[place] else other[place]


@token("NumPy", wrong=("u < cdf[-1]", "u < cdf[-1] / 2"))
def lookup_until_it_hits(w):
    """A lookup in a range that is larger than the weights are, again if nothing is hit."""
    cdf = w.cumsum()
    while True:
        u = RNG.random() * 1.5 * cdf[-1]
        if u < cdf[-1]:
            return np.searchsorted(cdf, u, side="right")


@verifier("random", wrong=("ring.popleft() * q", "ring[0] * q"))
def ring_of_numbers(p, q, draft_tokens):
    """A ring of numbers, refilled when it is empty, for all decisions of a round."""
    ring = collections.deque()

    def drawn(weights):
        if not ring:
            ring.extend(random.random() for _ in range(64))
        u = ring.popleft() * sum(weights)
        return next(token for token, total in enumerate(itertools.accumulate(weights)) if u < total)

    for i, draft in enumerate(draft_tokens.tolist()):
        if not ring:
            ring.extend(random.random() for _ in range(64))
        if not ring.popleft() * q[i, draft] < p[i, draft]:
            return [*draft_tokens[:i].tolist(), drawn(np.maximum(p[i] - q[i], 0) if (p[i] > q[i]).any() else p[i])]
    return [*draft_tokens.tolist(), drawn(p[-1])]


@count("NumPy", wrong=("pool[place], place + 1", "pool[place], place"))
def pool_of_an_array(p, q):
    """An array of 1024 uniforms, and the place of the next one."""
    pool, place, kept = RNG.random(1024), 0, 0
    for ratio in p / q:
        u, place = pool[place], place + 1
        if u >= ratio:
            break
        kept += 1
    return kept


@count("torch", wrong=("pool[place], place + 1", "pool[place], place"))
def pool_of_a_tensor(p, q):
    """A tensor of 1024 uniforms, and the place of the next one."""
    pool, place, kept = torch.rand(1024), 0, 0
    for ratio in p / q:
        u, place = pool[place], place + 1
        if u >= ratio:
            break
        kept += 1
    return kept
