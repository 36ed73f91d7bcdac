"""One world in which every idiom is judged by its law: three tokens, given drafts, the law in closed form."""

from __future__ import annotations

from collections import Counter
from functools import partial

import jax.numpy as jnp
import numpy as np

from reference import accept_probability, residual
from specverify.intercept import float_calls
from specverify.intercept.everywhere import answered_everywhere
from specverify.laws.enumeration import program_law
from specverify.laws.law import total_variation
from specverify.subjects.emitted import emitted_row
from specverify.subjects.keys import keyed
from specverify.subjects.seeded import seeded

P = np.array([[0.42, 0.18, 0.4], [1 / 6, 1 / 3, 1 / 2], [1 / 2, 1 / 6, 1 / 3]])
Q = np.array([[0.25, 0.6, 0.15], [0.5, 0.3, 0.2]])
DRAFTS = np.array([1, 0])


def rejection_law(gamma):
    """Return emitted tokens -> probability, of rejection sampling with these drafts."""
    law, kept = Counter(), 1.0
    for i, (p, q, draft) in enumerate(zip(P[:gamma], Q, DRAFTS.tolist(), strict=False)):
        ratio, before = accept_probability(p, q, draft), tuple(DRAFTS[:i].tolist())
        for token, mass in enumerate(residual(p, q)):
            law[(*before, token)] += kept * (1 - ratio) * mass
        kept *= ratio
    for token, mass in enumerate(P[gamma]):
        law[(*DRAFTS[:gamma].tolist(), token)] += kept * mass
    return {tokens: mass for tokens, mass in law.items() if mass > 0}


def once(verify, gamma):
    """Return what a sampler emits, once."""
    arrays = P[: gamma + 1], Q[:gamma], DRAFTS[:gamma]
    return emitted_row(keyed(verify)(*map(jnp.asarray, arrays)), gamma)


def exact_law(verify, gamma):
    """Return the law of a sampler, its random calls answered."""

    def program(draws):
        with answered_everywhere(draws):
            return once(verify, gamma)

    return float_calls.again(partial(program_law, program))


def distance(verify, gamma):
    """Return the total variation between the law of a sampler and that of rejection sampling."""
    return float(total_variation(exact_law(verify, gamma), rejection_law(gamma)).high)


def sample(verify, gamma, number, seed):
    """Return how often each row came when the sampler draws by itself."""
    with seeded(seed):
        return Counter(once(verify, gamma) for _ in range(number))
