"""Laws and exact binomial tails shared by the tests of the planned statistics."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from scipy.stats import binom

IMPROBABLE = 1e-6

UNIFORM = dict.fromkeys(range(8), 1 / 8)
PEAKED = {"a": 0.9, "b": 0.05, "c": 0.03, "d": 0.02}
GEOMETRIC = {token: 0.5 ** (token + 1) for token in range(30)} | {30: 0.5**30}
WIDE = dict.fromkeys(range(200), 1 / 200)

exhaustive = settings(derandomize=True, deadline=None, max_examples=200)
probabilities = st.floats(1e-9, 0.4)


def draws(law, samples, runs, seed):
    """Yield ``runs`` dictionaries of multinomial counts of ``samples`` samples each."""
    masses = np.array(list(law.values()))
    for counts in np.random.default_rng(seed).multinomial(samples, masses / masses.sum(), size=runs):
        yield dict(zip(law, counts.tolist(), strict=True))


def at_most(successes, runs, rate):
    """Return whether ``successes`` in ``runs`` are credible if the success rate is at most ``rate``."""
    return binom.sf(successes - 1, runs, rate) > IMPROBABLE


def at_least(successes, runs, rate):
    """Return whether ``successes`` in ``runs`` are credible if the success rate is at least ``rate``."""
    return binom.cdf(successes, runs, rate) > IMPROBABLE


def distance(law, other):
    return math.fsum(abs(law.get(x, 0.0) - other.get(x, 0.0)) for x in law.keys() | other.keys()) / 2
