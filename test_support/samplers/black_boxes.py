"""Samplers with one fault each, as black boxes: ``sample(seed, n)`` returns n token sequences."""

from __future__ import annotations

import itertools
import math

import numpy as np

P = np.array([0.1, 0.2, 0.3, 0.4])
LAW = {pair: float(math.prod(P[token] for token in pair)) for pair in itertools.product(range(4), repeat=2)}
"""Two tokens, drawn independently from P."""


def sampler_of(law):
    """Return a right sampler of a law, a mapping from sequences to probabilities."""
    outcomes, masses = list(law), np.array(list(law.values()))

    def sample(seed, n):
        return [outcomes[i] for i in np.random.default_rng(seed).choice(len(outcomes), n, p=masses)]

    return sample


right = sampler_of(LAW)


def biased(seed, n):
    """Planted bug: the second token is drawn from another pmf."""
    rng = np.random.default_rng(seed)
    return list(zip(rng.choice(4, n, p=P).tolist(), rng.choice(4, n, p=[0.2, 0.2, 0.3, 0.3]).tolist(), strict=True))


def one_uniform_for_both(seed, n):
    """Planted bug: one uniform draws both tokens, so they are dependent, though the law of each is right."""
    edges = np.cumsum(P)
    places = np.searchsorted(edges, np.random.default_rng(seed).random(n), side="right").tolist()
    return [(place, place) for place in places]


def impossible_sometimes(seed, n):
    rows = right(seed, n)
    return [(7, 7) if np.random.default_rng(seed + 1).random() < 0.2 and i == 0 else row for i, row in enumerate(rows)]


def two_rows_share_a_stream(seed, n):
    rows = right(seed, (n + 1) // 2)
    return [rows[i // 2] for i in range(n)]


def all_rows_alike(seed, n):
    """Planted bug: all rows of a call use the same random numbers; the law of each row is right."""
    return right(seed, 1) * n


def rows_use_one_number_in_two_ways(seed, n):
    """Planted bug: the rows of a call share one uniform per token; odd rows read it against another order of tokens."""
    uniforms = np.random.default_rng(seed).random(2)
    orders = np.array([0, 1, 2, 3]), np.array([1, 2, 3, 0])
    rows = [tuple(order[np.searchsorted(np.cumsum(P[order]), uniforms)].tolist()) for order in orders]
    return [rows[i % 2] for i in range(n)]


def both_halves_alike(seed, n):
    rows = right(seed, (n + 1) // 2)
    return [*rows, *rows][:n]


def seed_ignored(seed, n):
    return right(0, n)


def every_second_call_repeats():
    """Return a sampler whose second, fourth, ... call repeats the result of the call before."""
    calls = []

    def sample(seed, n):
        calls.append(right(seed, n) if len(calls) % 2 == 0 else calls[-1])
        return calls[-1]

    return sample


def neighbours_by_seed_and_row(seed, n):
    """Planted bug: row i of every call has the random stream i, so calls repeat each other."""
    return [right(i, 1)[0] for i in range(n)]
