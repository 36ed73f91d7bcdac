"""Subjects whose certificates the tests replay, by their names in this module."""

from __future__ import annotations

import random

import numpy as np

RNG = np.random.default_rng()


def of_numpy(p, q, draft_tokens):
    """A rejection sampler with a generator of the module."""
    for i, token in enumerate(draft_tokens):
        if RNG.random() >= p[i][token] / q[i][token]:
            rest = np.maximum(p[i] - q[i], 0)
            return [*draft_tokens[:i], RNG.choice(len(p[i]), p=rest / rest.sum())]
    return [*draft_tokens, RNG.choice(len(p[-1]), p=p[-1])]


def rejects_more(p, q, draft_tokens):
    """The same sampler with half the acceptance probability."""
    for i, token in enumerate(draft_tokens):
        if RNG.random() >= p[i][token] / q[i][token] / 2:
            rest = np.maximum(p[i] - q[i], 0) + 1e-9
            return [*draft_tokens[:i], RNG.choice(len(p[i]), p=rest / rest.sum())]
    return [*draft_tokens, RNG.choice(len(p[-1]), p=p[-1])]


def of_random(p, q, draft_tokens):
    """A rejection sampler with ``random``."""
    for i, token in enumerate(draft_tokens):
        if random.random() >= p[i][token] / q[i][token]:
            rest = np.maximum(p[i] - q[i], 0)
            return [*draft_tokens[:i], random.choices(range(len(p[i])), rest)[0]]
    return [*draft_tokens, random.choices(range(len(p[-1])), p[-1])[0]]


def with_a_shuffle(p, q, draft_tokens):
    """A rejection sampler that also shuffles a list."""
    RNG.shuffle(list(range(3)))
    return of_numpy(p, q, draft_tokens)


def wrong(p, q, draft_tokens):
    """A rejection sampler that draws the replacement from p instead of the residual."""
    for i, token in enumerate(draft_tokens):
        if RNG.random() >= p[i][token] / q[i][token]:
            return [*draft_tokens[:i], RNG.choice(len(p[i]), p=p[i])]
    return [*draft_tokens, RNG.choice(len(p[-1]), p=p[-1])]


def engine():
    """An engine that emits two tokens, each decided by a coin."""
    return [int(random.random() < 0.3), int(RNG.random() < 0.5)]
