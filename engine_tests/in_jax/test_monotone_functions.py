"""A function of one row of ``steps.RULES``, of a random number of JAX: its law, and that of a wrong twin."""

from __future__ import annotations

from test_support.jax import needs_jax  # noqa: F401 - it skips the file where JAX is not installed

# isort: split
import math

import jax
import jax.numpy as jnp
import pytest

from test_support.jax.answers import law_of

KEY = jax.random.key(3)


@pytest.mark.parametrize("below", [lambda u: jnp.arctan(u) < 0.25, jax.jit(lambda u: jnp.arctan(u) < 0.25)])
def test_a_comparison_is_carried_back_by_the_inverse(below):
    law = law_of(lambda: bool(below(jax.random.uniform(KEY))))
    assert law[True] == pytest.approx(math.tan(0.25), abs=1e-7)
    assert abs(law[True] - 0.25) > 0.005  # a coin that compares with the number as it is
