"""The names that the idioms of JAX use, for the table of judged idioms."""

from __future__ import annotations

from collections import Counter
from functools import partial

import jax.numpy as jnp

from specverify.subjects.emitted import emitted_row
from specverify.subjects.keys import keyed
from specverify.subjects.seeded import seeded
from test_support.idioms.judged import DRAFTS, P, Q, distance_of


def once(verify, gamma):
    """Return the tokens that a sampler emits in one call."""
    arrays = P[: gamma + 1], Q[:gamma], DRAFTS[:gamma]
    return emitted_row(keyed(verify)(*map(jnp.asarray, arrays)), gamma)


def distance(verify, gamma):
    """Return the total variation between the law of a sampler and that of rejection sampling."""
    return distance_of(partial(once, verify, gamma), gamma)


def sample(verify, gamma, number, seed):
    """Return the counts of the rows that the sampler emits with its own random numbers."""
    with seeded(seed):
        return Counter(once(verify, gamma) for _ in range(number))
