"""Numbers that are drawn together and used one after another."""

from __future__ import annotations

import collections
import itertools
import random

import numpy as np
import torch

from test_support.idioms.idiom import count, verifier

RNG = np.random.default_rng(0)


@verifier("random", wrong=("ring.popleft() * q", "ring[0] * q"))
def ring_of_numbers(p, q, draft_tokens):
    """A ring of numbers for all decisions of a round, refilled when it is empty."""
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
    """An array of 64 uniforms, and the index of the next one."""
    pool, place, kept = RNG.random(64), 0, 0
    for ratio in p / q:
        u, place = pool[place], place + 1
        if u >= ratio:
            break
        kept += 1
    return kept


@count("torch", wrong=("pool[place], place + 1", "pool[place], place"))
def pool_of_a_tensor(p, q):
    """A tensor of 64 uniforms, and the index of the next one."""
    pool, place, kept = torch.rand(64), 0, 0
    for ratio in p / q:
        u, place = pool[place], place + 1
        if u >= ratio:
            break
        kept += 1
    return kept
