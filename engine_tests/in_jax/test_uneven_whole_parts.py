"""A whole part of many outcomes that are not equally likely is compared, as in torch."""

from __future__ import annotations

from test_support.jax import needs_jax  # noqa: F401 - it skips the file where JAX is not installed

# isort: split
import math

import jax
import jax.numpy as jnp
import pytest

from test_support.jax.answers import law_of

KEY = jax.random.key(3)


@pytest.mark.parametrize(("bound", "share"), [(30, 1 - math.exp(-1.5)), (60, 1 - math.exp(-3.0))])
def test_a_whole_part_of_a_logarithm_is_compared(bound, share):
    def below():
        clamped = jnp.clip(jax.random.uniform(KEY), 0.01, 1.0)
        return bool(jnp.floor(-20 * jnp.log(clamped)) < bound)

    assert law_of(below)[True] == pytest.approx(share, abs=1e-6)
    assert abs(share - (1 - math.exp(-(bound + 1) / 20))) > 1e-3  # where the bound itself would count
