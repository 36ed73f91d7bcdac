"""Functions whose code names jax."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp

from specverify.subjects.libraries import names_library
from test_support.jax import (
    needs_jax,  # noqa: F401 - it skips the file where JAX is not installed
)


@partial(jax.jit, static_argnames="options")
def compiled(p, q, draft_tokens, rng, options=None):
    return rng + jnp.zeros_like(rng)


def with_a_default(p, q, draft_tokens, key=None):
    return jax.random.PRNGKey(0) if key is None else key


def of_numpy(p, q, draft_tokens, rng):
    return rng.random()


def test_which_functions_mention_jax():
    assert names_library(compiled, "jax")
    assert names_library(with_a_default, "jax")
    assert not names_library(of_numpy, "jax")
