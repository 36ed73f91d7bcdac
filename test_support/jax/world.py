"""The names that the idioms of JAX use, for the table of judged idioms."""

from __future__ import annotations

from collections import Counter
from functools import partial

import jax.numpy as jnp

from specverify.subjects.emitted import emitted_row
from specverify.subjects.fresh_generators import with_generator
from specverify.subjects.seeded import seeded
from test_support.idioms.judged import DRAFTS, P, Q, distance_of


def call_of(verify, gamma):
    """Return a function without arguments that calls a sampler once and returns the tokens that it emits."""
    with_a_key, arrays = (
        with_generator(verify),
        [jnp.asarray(each) for each in (P[: gamma + 1], Q[:gamma], DRAFTS[:gamma])],
    )
    return lambda: emitted_row(with_a_key(*arrays), gamma)


def once(verify, gamma):
    """Return the tokens that a sampler emits in one call, with all of its arrays made in the call."""
    return call_of(verify, gamma)()


def distance(verify, gamma):
    """Return the total variation between the law of a sampler and that of rejection sampling."""
    return distance_of(partial(once, verify, gamma), gamma)


def sample(verify, gamma, number, seed):
    """Return the counts of the rows that the sampler emits with its own random numbers."""
    call = call_of(verify, gamma)
    with seeded(seed):
        return Counter(call() for _ in range(number))
