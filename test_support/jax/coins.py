"""Ways to decide with JAX whether one draft is kept, or how many drafts of a row."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from test_support.jax.idiom import coin, count


@coin(wrong=("< p / q", "< p"))
def plain_comparison(p, q, key):
    """A uniform is compared with the ratio; ``if`` reads the answer."""
    return jax.random.uniform(key) < p / q


@coin(wrong=("< p / q", "< p"), jitted=True)
def compiled_comparison(p, q, key):
    """The same under ``jit``."""
    return jax.random.uniform(key) < p / q


@coin(wrong=("float(p / q)", "float(p)"))
def python_numbers(p, q, key):
    """All numbers are converted to Python numbers."""
    return float(jax.random.uniform(key)) < min(1.0, float(p / q))


@coin(wrong=("u.item() < p / q", "1 - u.item() ** 2 < p / q"))
def item_of_a_uniform(p, q, key):
    """A uniform is taken out of its array with ``item``."""
    u = jax.random.uniform(key)
    return u.item() < p / q


@coin(wrong=("u[0]", "u[0] ** 2"))
def array_of_numpy(p, q, key):
    """A uniform is converted to a NumPy array."""
    u = np.asarray(jax.random.uniform(key, (1,)))
    return u[0] < np.asarray(p / q)


@coin(wrong=("u * q < p", "u * p < q"), jitted=True)
def uniform_below_q(p, q, key):
    """A uniform below q is compared with p."""
    u = jax.random.uniform(key)
    return u * q < p


@coin(wrong=("2 * p / q - 1", "p / q"), jitted=True)
def uniform_of_another_interval(p, q, key):
    """A uniform from -1 to 1, by ``minval`` and ``maxval``."""
    return jax.random.uniform(key, minval=-1.0, maxval=1.0) < 2 * p / q - 1


@coin(wrong=("jnp.minimum(1.0, p / q)", "jnp.minimum(1.0, q / p)"), jitted=True)
def bernoulli(p, q, key):
    """``bernoulli`` of the ratio."""
    return jax.random.bernoulli(key, jnp.minimum(1.0, p / q))


@coin(wrong=("jnp.log(p) - jnp.log(q)", "jnp.log(p)"), jitted=True)
def logarithms(p, q, key):
    """The logarithm of a uniform below that of the ratio."""
    return jnp.log(jax.random.uniform(key)) < jnp.log(p) - jnp.log(q)


@coin(wrong=("jnp.log(q / p)", "jnp.log(q)"), jitted=True)
def exponential_clock(p, q, key):
    """An exponential time that rings after a time."""
    return jax.random.exponential(key) >= jnp.log(q / p)


@coin(wrong=("1 - p / q", "1 - p"), jitted=True)
def upper_end(p, q, key):
    """A uniform is compared with 1 minus the ratio."""
    return jax.random.uniform(key) >= 1 - p / q


@coin(wrong=("lambda: True, lambda: False", "lambda: False, lambda: True"), jitted=True)
def conditional(p, q, key):
    """``lax.cond`` of the comparison."""
    return jax.lax.cond(jax.random.uniform(key) < p / q, lambda: True, lambda: False)


@coin(wrong=("uniform(jax.random.fold_in(key, 7))", "uniform(jax.random.fold_in(key, 7)) / 2"))
def folded_key(p, q, key):
    """The key of a request, folded into the key."""
    return jax.random.uniform(jax.random.fold_in(key, 7)) < p / q


@coin(wrong=("min=p", "max=p"), jitted=True)
def typed_key(p, q, key):
    """A key of the new kind, and ``clip``."""
    return jax.random.uniform(jax.random.wrap_key_data(key)) * jnp.clip(q, min=p) < p


@coin(wrong=("< p / q", "> p / q"))
def seed_of_numpy(p, q, key):
    """A key is made from a seed that NumPy draws."""
    return jax.random.uniform(jax.random.PRNGKey(np.random.randint(2**31))) < p / q  # noqa: NPY002 - as scripts have it


# How many of a row


@count(wrong=("u < p / q", "u[0] < p / q"), jitted=True)
def cumulated_product(p, q, key):
    """The sum of a cumulated product."""
    u = jax.random.uniform(key, p.shape)
    return jnp.cumprod(u < p / q).sum()


@count(wrong=("u < p / q", "u < p"), jitted=True)
def first_rejection(p, q, key):
    """The index of the first False, after one is appended."""
    u = jax.random.uniform(key, p.shape)
    return jnp.argmin(jnp.append(u < p / q, False))


@count(wrong=("jnp.arange(len(p)), len(p)", "jnp.arange(len(p)), 1"), jitted=True)
def smallest_place(p, q, key):
    """The smallest rejected position."""
    rejected = jax.random.uniform(key, p.shape) >= p / q
    return jnp.where(rejected, jnp.arange(len(p)), len(p)).min()


@count(wrong=("jax.random.split(key, len(p))", "jnp.stack([key] * len(p))"), jitted=True)
def one_key_each(p, q, key):
    """A coin for each draft, of its own key, by ``vmap``; the twin gives all of them one key."""
    kept = jax.vmap(lambda a, b, own: jax.random.uniform(own) < a / b)(p, q, jax.random.split(key, len(p)))
    return jnp.cumprod(kept).sum()


@count(wrong=("alive & (u < ratio)", "u < ratio"), jitted=True)
def scanned(p, q, key):
    """``lax.scan`` carries whether all drafts so far were kept."""

    def step(alive, given):
        u, ratio = given
        now = alive & (u < ratio)
        return now, now

    return jax.lax.scan(step, True, (jax.random.uniform(key, p.shape), p / q))[1].sum()


@count(wrong=("uniform(own) < p[n] / q[n]", "uniform(own) < p[0] / q[0]"), jitted=True)
def while_loop(p, q, key):
    """``lax.while_loop`` that splits the key in each iteration."""

    def body(state):
        n, _, key = state
        key, own = jax.random.split(key)
        kept = jax.random.uniform(own) < p[n] / q[n]
        return n + kept, kept, key

    return jax.lax.while_loop(lambda state: state[1] & (state[0] < len(p)), body, (0, True, key))[0]


@count(wrong=("n + (alive & kept)", "n + kept"), jitted=True)
def fori_loop(p, q, key):
    """``lax.fori_loop`` over the drafts, with the position folded into the key."""

    def body(place, state):
        n, alive = state
        kept = jax.random.uniform(jax.random.fold_in(key, place)) < p[place] / q[place]
        return n + (alive & kept), alive & kept

    return jax.lax.fori_loop(0, len(p), body, (0, True))[0]


@count(wrong=("jax.random.split(key)", "key, key"))
def plain_loop(p, q, key):
    """A Python loop that splits its key; the twin does not split it."""
    for place in range(len(p)):
        key, own = jax.random.split(key)
        if jax.random.uniform(own) >= p[place] / q[place]:
            return place
    return len(p)


@count(wrong=("jnp.logical_and, ", "jnp.logical_or, "), jitted=True)
def associative_scan(p, q, key):
    """``lax.associative_scan`` of the coins."""
    return jax.lax.associative_scan(jnp.logical_and, jax.random.uniform(key, p.shape) < p / q).sum()


@count(wrong=("~kept", "kept"), jitted=True)
def places_of_rejections(p, q, key):
    """``jnp.nonzero`` with a size."""
    kept = jax.random.bernoulli(key, jnp.minimum(p / q, 1))
    return jnp.nonzero(~kept, size=1, fill_value=len(p))[0][0]


@count(wrong=("u / 2", "u / 3"), jitted=True)
def all_at_once(p, q, key):
    """``jnp.all`` of every prefix of a row."""
    u = 2 * jax.random.uniform(key, p.shape)
    kept = u / 2 < p / q
    return jnp.stack([kept[:n].all() for n in range(1, len(p) + 1)]).sum()
