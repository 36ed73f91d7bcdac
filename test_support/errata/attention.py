"""A language model of one attention layer with a cache, small enough to show the effect of a wrong cache."""

from __future__ import annotations

import random

import numpy as np

WIDTH, VOCABULARY, LONGEST = 6, 4, 64


def _weights(*shape):
    rng = random.Random(f"attention/{shape}")
    return np.array([rng.gauss(0, 0.6) for _ in range(int(np.prod(shape)))]).reshape(shape)


EMBEDDING, POSITION, OUTPUT = _weights(VOCABULARY, WIDTH), _weights(LONGEST, WIDTH), _weights(WIDTH, VOCABULARY)
QUERY, KEY, VALUE = _weights(3, WIDTH, WIDTH)


def feed(tokens, cache=None):
    """Feed tokens after those of the cache; return the pmfs after every fed token ``[fed, V]`` and the new cache.

    The cache is ``[2, tokens, width]``. Each fed token attends to the cache and to the fed tokens up to itself.
    """
    held = 0 if cache is None else cache.shape[1]
    hidden = EMBEDDING[list(tokens)] + POSITION[held : held + len(tokens)]
    new = np.stack([hidden @ KEY, hidden @ VALUE])
    keys, values = cache = new if cache is None else np.concatenate([cache, new], axis=1)
    scores = hidden @ QUERY @ keys.T / np.sqrt(WIDTH)
    places = np.arange(held + len(tokens))
    scores = np.where(places <= places[held:, None], scores, -np.inf)
    logits = (hidden + _softmax(scores) @ values) @ OUTPUT
    return _softmax(logits), cache


def after(tokens):
    """Return the pmf of the token after ``tokens``, computed without a cache."""
    return feed(tokens)[0][-1]


def apart(one, other):
    """Return the total variation between two pmfs."""
    return float(abs(one - other).sum() / 2)


def _softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)
