"""Every public function of ``jax.random`` by an example: answered, refused, or one that draws nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import random

P = jnp.array([0.5, 0.125, 0.375])
THIRDS = jnp.array([0.2, 1.0, 2.0])


class Example(NamedTuple):
    """A function of a key, and why its law is not known, if it is not."""

    call: Callable[[Any], Any]
    refused: str = ""


NO_VALUE, NO_LAW = "the value of a (uniform )?random number is needed", "draws from a law that cannot be enumerated"
NO_SQUARE = "a square is taken of a random number of unknown sign"
NO_ZERO = "multiplied by a random number of unknown sign"
NO_SIGN = "divided by a random number that may be 0"
EXAMPLES: dict[str, Example] = {
    "uniform": Example(lambda key: jnp.digitize(random.uniform(key, (2,), minval=-1, maxval=3)[1], jnp.array([0, 2]))),
    "bernoulli": Example(lambda key: random.bernoulli(key, P)),
    "bits": Example(lambda key: random.bits(key) % 3),
    "categorical": Example(lambda key: random.categorical(key, jnp.log(P))),
    "choice": Example(lambda key: random.choice(key, 3, (2,), replace=False, p=P)),
    "exponential": Example(lambda key: jnp.argmin(random.exponential(key, (3,)) / P)),
    "gumbel": Example(lambda key: jnp.argmax(random.gumbel(key, (3,)) + jnp.log(P))),
    "laplace": Example(
        lambda key: jnp.digitize(random.laplace(key), jnp.array([-1.0, 0.0])), "a random number of unknown sign"
    ),
    "logistic": Example(
        lambda key: jnp.digitize(random.logistic(key), jnp.array([-1.0, 0.0])), "random numbers .* are joined"
    ),
    "pareto": Example(lambda key: jnp.digitize(random.pareto(key, 2.0), jnp.array([1.2, 2.0]))),
    "permutation": Example(lambda key: random.permutation(key, 3)),
    "rademacher": Example(lambda key: random.rademacher(key, ())),
    "randint": Example(lambda key: random.randint(key, (), -1, 3)),
    "rayleigh": Example(lambda key: jnp.digitize(random.rayleigh(key, 1.0), THIRDS)),
    "weibull_min": Example(lambda key: jnp.digitize(random.weibull_min(key, 1.0, 2.0), THIRDS)),
    "geometric": Example(lambda key: random.geometric(key, 0.5) < 3),
    "triangular": Example(lambda key: random.triangular(key, 0.0, 1.0, 2.0) < 0.5),
    "cauchy": Example(lambda key: random.cauchy(key) < 0.5),
    "normal": Example(lambda key: random.normal(key) < 0.5),
    "lognormal": Example(lambda key: random.lognormal(key) < 1.5),
    "truncated_normal": Example(lambda key: random.truncated_normal(key, -1, 1) < 0.5),
    "multivariate_normal": Example(lambda key: random.multivariate_normal(key, P, jnp.eye(3))[0] < 0, NO_ZERO),
    "generalized_normal": Example(lambda key: random.generalized_normal(key, 1.0) < 0, NO_LAW),
    "maxwell": Example(lambda key: random.maxwell(key) < 1, NO_SQUARE),
    "double_sided_maxwell": Example(lambda key: random.double_sided_maxwell(key, 0.0, 1.0) < 1, NO_SQUARE),
    "orthogonal": Example(lambda key: random.orthogonal(key, 2)[0, 0] < 0, NO_VALUE),
    "ball": Example(lambda key: random.ball(key, 2)[0] < 0, NO_LAW),
    "beta": Example(lambda key: random.beta(key, 1.0, 1.0) < 0.5, NO_LAW),
    "binomial": Example(lambda key: random.binomial(key, 2, 0.5), NO_SIGN),
    "multinomial": Example(lambda key: random.multinomial(key, 2, P), NO_SIGN),
    "chisquare": Example(lambda key: random.chisquare(key, 1.0) < 1, NO_LAW),
    "dirichlet": Example(lambda key: random.dirichlet(key, P)[0] < 0.5, NO_LAW),
    "f": Example(lambda key: random.f(key, 1.0, 1.0) < 1, NO_LAW),
    "gamma": Example(lambda key: random.gamma(key, 1.0) < 1, NO_LAW),
    "loggamma": Example(lambda key: random.loggamma(key, 1.0) < 1, NO_LAW),
    "poisson": Example(lambda key: random.poisson(key, 1.0), NO_VALUE),
    "t": Example(lambda key: random.t(key, 1.0) < 0, NO_LAW),
    "wald": Example(lambda key: random.wald(key, 1.0) < 1, NO_SQUARE),
}
HARMLESS = {"PRNGKey", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "split", "wrap_key_data"}
"""What makes keys and reads them; no number is drawn."""
PUBLIC = {name for name in dir(jax.random) if not name.startswith("_") and callable(getattr(jax.random, name))}
