"""Whole rejection samplers of one row, as engines write them with JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from test_support.jax.idiom import owed, verifier


def ratios(p, q, draft_tokens):
    places = jnp.arange(len(draft_tokens))
    return p[places, draft_tokens] / q[places, draft_tokens]


def rows_after(p, q):
    """Return the row of the last token, for each number of accepted drafts: a residual, or at the end the bonus row."""
    left = jnp.maximum(p[:-1] - q, 0)
    return jnp.concatenate([jnp.where(left.sum(-1, keepdims=True) > 0, left, p[:-1]), p[-1:]])


@verifier(wrong=("jax.random.split(key)", "key, key"), jitted=True)
def vectorised(p, q, draft_tokens, key):
    """All positions at once; the twin draws its coins and its token with one key."""
    coin_key, token_key = jax.random.split(key)
    accepted = jnp.cumprod(jax.random.uniform(coin_key, draft_tokens.shape) < ratios(p, q, draft_tokens)).sum()
    token = jax.random.categorical(token_key, jnp.log(rows_after(p, q)[accepted]))
    row = jnp.where(jnp.arange(len(draft_tokens) + 1) < accepted, jnp.append(draft_tokens, 0), -1)
    return row.at[accepted].set(token)


@verifier(wrong=("jnp.log(rows_after(p, q))", "jnp.log(p)"), jitted=True)
def all_replacements_prepared(p, q, draft_tokens, key):
    """A replacement is drawn at every position, and one of them is used."""
    coin_key, token_key = jax.random.split(key)
    kept = jax.random.uniform(coin_key, draft_tokens.shape) < ratios(p, q, draft_tokens)
    count = jnp.cumprod(kept.astype(jnp.int32)).sum()
    recovered = jax.random.categorical(token_key, jnp.log(rows_after(p, q)), axis=-1)
    places = jnp.arange(len(p))
    return jnp.where(places < count, jnp.append(draft_tokens, -1), jnp.where(places == count, recovered, -1))


@verifier(wrong=("emitted.at[place].set(new)", "emitted.at[place].set(draft_tokens[0])"), jitted=True)
def scanned(p, q, draft_tokens, key):
    """``lax.scan`` over positions that carries whether the round continues."""
    gamma, rows = len(draft_tokens), rows_after(p, q)
    padded, ratio = jnp.append(draft_tokens, 0), jnp.append(ratios(p, q, draft_tokens), 0.0)

    def step(carry, place):
        alive, emitted, key = carry
        key, coin_key, token_key = jax.random.split(key, 3)
        kept = (jax.random.uniform(coin_key) < ratio[place]) & (place < gamma)
        other = jax.random.categorical(token_key, jnp.log(rows[place]))
        new = jnp.where(kept, padded[place], other)
        emitted = jnp.where(alive, emitted.at[place].set(new), emitted)
        return (alive & kept, emitted, key), None

    start = (jnp.array(True), jnp.full(gamma + 1, -1), key)
    return jax.lax.scan(step, start, jnp.arange(gamma + 1))[0][1]


@verifier(wrong=("jnp.where(count < gamma, left, p[gamma])", "left"), jitted=True)
def while_loop(p, q, draft_tokens, key):
    """``lax.while_loop`` to the first rejection, then one draw."""
    gamma, ratio = len(draft_tokens), ratios(p, q, draft_tokens)

    def kept(count):
        return jax.random.uniform(jax.random.fold_in(key, count)) < ratio[jnp.minimum(count, gamma - 1)]

    count = jax.lax.while_loop(lambda n: (n < gamma) & kept(n), lambda n: n + 1, 0)
    left = owed(p[count], jnp.append(q, q[-1:], 0)[count])
    token = jax.random.categorical(jax.random.fold_in(key, 99), jnp.log(jnp.where(count < gamma, left, p[gamma])))
    row = jnp.where(jnp.arange(gamma + 1) < count, jnp.append(draft_tokens, 0), -1)
    return jax.lax.dynamic_update_slice(row, token[None], (count,))


@verifier(wrong=("owed(p[place], q[place])", "owed(p[place], q[0])"))
def plain_loop(p, q, draft_tokens, key):
    """A Python loop with ``if``, and a split key for each decision."""
    emitted = []
    for place, draft in enumerate(draft_tokens):
        key, coin_key, token_key = jax.random.split(key, 3)
        if jax.random.uniform(coin_key) < p[place, draft] / q[place, draft]:
            emitted.append(draft)
            continue
        left = owed(p[place], q[place])
        return [*emitted, jax.random.choice(token_key, len(left), p=left / left.sum())]
    return [*emitted, jax.random.choice(key, len(p[-1]), p=p[-1])]


@verifier(wrong=("jnp.log(left)", "jnp.log(p[:-1])"), jitted=True)
def rows_side_by_side(p, q, draft_tokens, key):
    """``vmap`` over positions: a coin and a replacement of each, with separate keys."""
    left = rows_after(p, q)[:-1]

    def of_position(own, ratio, logits):
        coin_key, token_key = jax.random.split(own)
        return jax.random.uniform(coin_key) < ratio, jax.random.categorical(token_key, logits)

    keys = jax.random.split(key, len(draft_tokens) + 1)
    kept, others = jax.vmap(of_position)(keys[:-1], ratios(p, q, draft_tokens), jnp.log(left))
    bonus = jax.random.categorical(keys[-1], jnp.log(p[-1]))
    first = jnp.argmin(jnp.append(kept, False))
    row = jnp.append(jnp.where(jnp.arange(len(kept)) < first, draft_tokens, others), bonus)
    return jnp.where(jnp.arange(len(row)) <= first, row, -1)


@verifier(wrong=("new / (noise + 1e-9)", "new"), jitted=True)
def flat_segments(p, q, draft_tokens, key):
    """First rejections by ``segment_min``, replacements by weights over exponential noise."""
    coin_key, noise_key = jax.random.split(key)
    gamma = len(draft_tokens)
    rejected = ratios(p, q, draft_tokens) <= jax.random.uniform(coin_key, (gamma,))
    places = jnp.where(rejected, jnp.arange(gamma), gamma)
    first = jax.ops.segment_min(places, jnp.zeros(gamma, jnp.int32), num_segments=1)[0]
    new = rows_after(p, q)
    noise = jax.random.exponential(noise_key, new.shape)
    recovered = jnp.argmax(new / (noise + 1e-9), axis=-1)
    padded = jnp.append(draft_tokens, 0)
    row = jnp.where(jnp.arange(gamma + 1) < first, padded, recovered)
    return jnp.where(jnp.arange(gamma + 1) > first, -1, row)


@verifier(wrong=("cdf <= coins[-1] * cdf[-1]", "cdf <= coins[0] * cdf[-1]"), jitted=True)
def coins_of_one_call(p, q, draft_tokens, key):
    """One call draws all uniforms; the twin uses one of them twice."""
    gamma = len(draft_tokens)
    coins = jax.random.uniform(key, (gamma + 1,))
    count = jnp.cumprod(coins[:gamma] < ratios(p, q, draft_tokens)).sum()
    cdf = jnp.cumsum(jnp.take(rows_after(p, q), count, axis=0))
    token = (cdf <= coins[-1] * cdf[-1]).sum()
    return jnp.where(jnp.arange(gamma + 1) == count, token, jnp.where(jnp.arange(gamma + 1) < count,
                     jnp.append(draft_tokens, 0), -1))  # fmt: skip
