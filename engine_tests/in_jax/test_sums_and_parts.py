"""Products, sums at places and divisions of random numbers of JAX: a right sampler is decided, its twin is far off."""

from __future__ import annotations

from test_support.jax import needs_jax  # noqa: F401 - it skips the file where JAX is not installed

# isort: split
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from specverify.intercept.refusals import NeedsValue
from test_support.intercept.compositions import answered_law
from test_support.jax.idiom import coin
from test_support.jax.world import distance

NEAR, FAR = 1e-6, 0.005


def as_a_sum(ratio):
    """Return the number below which the sum of two uniforms is with this probability."""
    ratio = min(1.0, float(ratio))
    return math.sqrt(2 * ratio) if ratio < 0.5 else 2 - math.sqrt(2 * (1 - ratio))


@coin(wrong=("jnp.ones(2)", "jnp.array([1.0, 2.0])"))
def product_of_rows(p, q, key):
    """A product of two rows is a sum."""
    return jax.random.uniform(key, (2,)) @ jnp.ones(2) < as_a_sum(p / q)


@coin(wrong=("jnp.eye(2)", "jnp.ones((2, 2))"), jitted=True)
def product_of_matrices(p, q, key):
    """A product with the unit matrix, under ``jit``."""
    return (jax.random.uniform(key, (2, 2)) @ jnp.eye(2))[1, 0] < p / q


@coin(wrong=('"bij,bj->bi"', '"bij,bi->bi"'))
def product_of_batches(p, q, key):
    """``einsum`` over a batch; the twin adds up the row and forgets the weights."""
    weights = jnp.array([[1.0, 0.0], [0.0, 1.0]])
    return jnp.einsum("bij,bj->bi", jax.random.uniform(key, (2, 2, 2)), weights)[1, 1] < p / q


@coin(wrong=("[1] < p / q", "[0] < p / q"))
def sum_at_places(p, q, key):
    """``at[...].add``, at the place to which one uniform alone is added; one is out of range and is dropped."""
    return jnp.zeros(2).at[jnp.array([0, 0, 1, 5])].add(jax.random.uniform(key, (4,)))[1] < p / q


@coin(wrong=("jax.lax.stop_gradient(u)", "jax.lax.stop_gradient(u * u)"), jitted=True)
def stopped_gradient(p, q, key):
    """``stop_gradient`` leaves the number as it is."""
    u = jax.random.uniform(key)
    return jax.lax.stop_gradient(u) < p / q


@coin(wrong=("(1 + jnp.exp(", "(2 + jnp.exp("))
def softmax(p, q, key):
    """A value of ``softmax`` of a uniform and 0, which contains ``stop_gradient``."""
    soft = jax.nn.softmax(jnp.stack([jax.random.uniform(key), 0.0]))
    return soft[1] > 1 / (1 + jnp.exp(p / q))


@coin(wrong=("== 0", "<= 1"))
def floor_divide(p, q, key):
    """The quotient by the ratio is 0 below it."""
    return jnp.floor_divide(jax.random.uniform(key), p / q) == 0


@coin(wrong=("// (p / q)", "// p"), jitted=True)
def quotient(p, q, key):
    """The same by the operator, under ``jit``."""
    return jax.random.uniform(key) // (p / q) < 1


IDIOMS = [value for value in list(globals().values()) if hasattr(value, "mistake")]


@pytest.mark.parametrize("idiom", IDIOMS, ids=[idiom.name for idiom in IDIOMS])
def test_the_right_one_has_the_law_and_its_twin_has_not(idiom):
    assert distance(idiom.right, idiom.gamma) < NEAR
    assert distance(idiom.wrong, idiom.gamma) > FAR


@pytest.mark.parametrize(
    "compute",
    [
        lambda u: jnp.floor_divide(jnp.maximum(u, 0.6), 0.3) < 2,
        lambda u: jnp.floor_divide(u, -0.3) < -2,
        lambda u: jnp.zeros(1, jnp.bfloat16).at[0].add(u.astype(jnp.bfloat16)) < 0.25,
    ],
)
def test_what_has_no_rule_is_refused(compute):
    with pytest.raises(NeedsValue):
        answered_law(lambda: np.asarray(compute(jax.random.uniform(jax.random.key(0)))).reshape(-1))
