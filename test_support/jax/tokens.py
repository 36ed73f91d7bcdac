"""Ways to draw a token with JAX from weights, which need not sum to 1."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from test_support.jax.idiom import token


def last_of(weights):
    """Return the last token that can be drawn, for a number that rounding puts above all partial sums."""
    return jnp.max(jnp.where(weights > 0, jnp.arange(len(weights)), 0))


@token(wrong=("jnp.log(weights)", "weights"), jitted=True)
def categorical(weights, key):
    """``categorical`` of the logarithms."""
    return jax.random.categorical(key, jnp.log(weights))


@token(wrong=("jnp.log(jnp.maximum(weights, 1e-30))", "jnp.log(jnp.maximum(weights, 1e-1))"))
def categorical_of_clamped_weights(weights, key):
    """``categorical`` of clamped weights, so that no logarithm of 0 occurs."""
    return jax.random.categorical(key, jnp.log(jnp.maximum(weights, 1e-30)))


@token(wrong=("log(weights)", "log(weights + 1)"), jitted=True)
def gumbel_noise(weights, key):
    """A Gumbel race."""
    return jnp.argmax(jnp.log(weights) + jax.random.gumbel(key, weights.shape))


@token(wrong=("jnp.log(weights) - jnp", "weights - jnp"), jitted=True)
def gumbel_noise_by_hand(weights, key):
    """Gumbel noise, made of uniforms."""
    u = jax.random.uniform(key, weights.shape, minval=1e-20)
    return jnp.argmax(jnp.log(weights) - jnp.log(1.0) + -jnp.log(-jnp.log(u)))


@token(wrong=("jnp.argmin(", "jnp.argmax("), jitted=True)
def exponential_race(weights, key):
    """Exponential clocks over weights: the first one rings."""
    return jnp.argmin(jnp.where(weights > 0, jax.random.exponential(key, weights.shape) / weights, jnp.inf))


@token(wrong=("weights / (", "weights ** 2 / ("), jitted=True)
def weights_over_noise(weights, key):
    """Weights over exponential noise, to which a small number is added."""
    return jnp.argmax(weights / (jax.random.exponential(key, weights.shape) + 1e-9))


@token(wrong=("** (1 / weights)", "* weights"), jitted=True)
def powers_of_uniforms(weights, key):
    """A race of powers."""
    return jnp.argmax(jnp.where(weights > 0, jax.random.uniform(key, weights.shape) ** (1 / weights), -1.0))


@token(wrong=("u * cdf[-1]", "u"), jitted=True)
def looked_up(weights, key):
    """``searchsorted`` in a cumulated sum."""
    cdf, u = jnp.cumsum(weights), jax.random.uniform(key)
    return jnp.searchsorted(cdf, u * cdf[-1], side="right")


@token(wrong=("u * cdf[-1]", "u"), jitted=True)
def looked_up_by_comparing_all(weights, key):
    """``searchsorted`` with the method that compares with all bounds."""
    cdf, u = jnp.cumsum(weights), jax.random.uniform(key)
    return jnp.searchsorted(cdf, u * cdf[-1], side="right", method="compare_all")


@token(wrong=("cdf <= u", "cdf > u"), jitted=True)
def counted(weights, key):
    """The number of partial sums at or below the uniform."""
    cdf = jnp.cumsum(weights)
    cdf /= cdf[-1]
    u = jax.random.uniform(key)
    return (cdf <= u).sum()


@token(wrong=("cdf > u", "cdf > 1 - u ** 2"), jitted=True)
def first_above(weights, key):
    """``argmax`` of the comparisons."""
    cdf = jnp.cumsum(weights)
    cdf /= cdf[-1]
    u = jax.random.uniform(key, (1,))
    return jnp.argmax(cdf > u)


@token(wrong=(", p=weights / weights.sum()", ""), jitted=True)
def choice(weights, key):
    """``choice`` with probabilities."""
    return jax.random.choice(key, weights.shape[0], p=weights / weights.sum())


@token(wrong=("replace=False, p=weights / weights.sum()", "replace=False"), jitted=True)
def choice_without_replacement(weights, key):
    """``choice`` of one element without replacement."""
    return jax.random.choice(key, weights.shape[0], (1,), replace=False, p=weights / weights.sum())[0]


@token(wrong=("u < so_far", "u >= so_far"))
def plain_scan(weights, key):
    """A Python loop over the partial sums."""
    u, so_far = jax.random.uniform(key) * weights.sum(), 0.0
    for place, weight in enumerate(weights):
        so_far += weight
        if u < so_far:
            return place
    return last_of(weights)


@token(wrong=("state[1] <= u", "state[1] > u"), jitted=True)
def while_loop(weights, key):
    """``lax.while_loop`` over the partial sums."""
    u = jax.random.uniform(key) * weights.sum()
    end = last_of(weights)

    def body(state):
        place, so_far = state
        return place + 1, so_far + weights[place + 1]

    return jax.lax.while_loop(lambda state: (state[1] <= u) & (state[0] < end), body, (0, weights[0]))[0]


@token(wrong=("jax.lax.top_k(scores, 1)[1][0]", "jax.lax.top_k(scores, 2)[1][1]"), jitted=True)
def best_one(weights, key):
    """``top_k`` of a Gumbel race."""
    scores = jnp.log(weights) + jax.random.gumbel(key, weights.shape)
    return jax.lax.top_k(scores, 1)[1][0]


@token(wrong=("[-1]", "[0]"), jitted=True)
def last_in_order(weights, key):
    """``argsort`` of a Gumbel race."""
    return jnp.argsort(jnp.log(weights) + jax.random.gumbel(key, weights.shape))[-1]


@token(wrong=("scores == scores.max()", "scores == scores.min()"), jitted=True)
def equal_to_the_largest(weights, key):
    """The index of the largest score, by comparing all with it."""
    scores = jnp.log(weights + 1e-20) + jax.random.gumbel(key, weights.shape)
    return jnp.argmax(scores == scores.max())


@token(wrong=("jnp.log(row)", "row"), jitted=True)
def batch_of_one(weights, key):
    """``vmap`` of ``categorical``, a key for each row."""
    draw = jax.vmap(lambda own, row: jax.random.categorical(own, jnp.log(row)))
    return draw(jax.random.split(key, 1), weights[None])[0]


@token(wrong=("one_hot.cumsum()", "one_hot"), jitted=True)
def one_hot_of_the_cell(weights, key):
    """A one-hot row of the cell, and the index of its True."""
    edges = jnp.concatenate([jnp.zeros(1), jnp.cumsum(weights)])
    edges /= edges[-1]
    u = jax.random.uniform(key)
    one_hot = (edges[:-1] <= u) & (u < edges[1:])
    return weights.shape[0] - one_hot.cumsum().sum()


@token(wrong=("jnp.log(weights)", "-jnp.log(weights)"), unknown="the maximum of several random numbers", jitted=True)
def more_bits(weights, key):
    """``categorical`` with the noise of more bits, which is made of two uniforms."""
    return jax.random.categorical(key, jnp.log(weights), mode="high")
