"""Sums of outcomes of JAX beside bounds, and movement of random numbers: exact laws."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from test_support.intercept.compositions import answered_law

SHARE = 0.25
BOTH = SHARE**2


def uniforms(count=2):
    return jax.random.uniform(jax.random.key(0), (count,))


def coins():
    return uniforms() < SHARE


@pytest.mark.parametrize(
    ("compute", "share"),
    [
        (lambda: coins().sum() <= 1.5, 1 - BOTH),
        (lambda: (coins().astype(jnp.int32) * 2 - 1).sum() < 1, 1 - BOTH),
        (lambda: jnp.stack([uniforms()[0], uniforms()[1]])[1] < SHARE, SHARE),
        (lambda: jnp.pad(uniforms(1), (1, 0), constant_values=0.9)[1] < SHARE, SHARE),
        (lambda: jnp.logical_xor(*coins()), 2 * SHARE * (1 - SHARE)),
    ],
)
def test_the_answer_has_its_probability(compute, share):
    assert answered_law(lambda: np.asarray(compute()).reshape(-1))[(1,)] == pytest.approx(share, abs=1e-6)
