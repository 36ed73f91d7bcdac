"""Ways to write a step of a rejection sampler with JAX: each right, and once more with one mistake in it.

``coin`` decides one draft, ``count`` a row of drafts, ``token`` draws from weights, and ``verifier`` is the whole
sampler. The rest of the sampler is the same for all. ``wrong`` is the mistake: a piece of the source that occurs once,
and its replacement. With ``jitted`` the function is compiled by JAX, as in engines.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from test_support.idioms.judged import with_mistake


class Idiom(NamedTuple):
    """An idiom, and the sampler that is written with it."""

    part: str
    """``coin``, ``count``, ``token`` or ``verifier``."""
    name: str
    what: str
    """The first line of its docstring."""
    right: Callable[..., Any]
    """``right(p, q, draft_tokens, key)`` returns the emitted tokens."""
    wrong: Callable[..., Any]
    """The same with the mistake."""
    mistake: tuple[str, str]
    """What is right, and what is written instead."""
    gamma: int
    unknown: str
    """What cannot be told of it, if the verdict is to be UNKNOWN."""


def _part(part: str, into: Any, gamma: int, wrong: tuple[str, str], *, jitted: bool = False, unknown: str = "") -> Any:
    def made(function: Any) -> Idiom:
        pair = function, with_mistake(function, *wrong)
        right, twin = (into(jax.jit(each) if jitted else each, function) for each in pair)
        what = (function.__doc__ or "").strip().partition("\n")[0]
        return Idiom(part, function.__name__.replace("_", " "), what, right, twin, wrong, gamma, unknown)

    return made


def owed(p, q):
    """Return the residual, or p if rounding makes the residual zero."""
    left = jnp.maximum(p - q, 0)
    return jnp.where(left.sum() > 0, left, p)


def _of_coin(keeps: Any, told: Any) -> Any:
    def verify(p, q, draft_tokens, key):
        for i, token in enumerate(draft_tokens.tolist()):
            key, coin_key, token_key = jax.random.split(key, 3)
            if not keeps(p[i, token], q[i, token], coin_key):
                return [*draft_tokens[:i].tolist(), int(jax.random.categorical(token_key, jnp.log(owed(p[i], q[i]))))]
        return [*draft_tokens.tolist(), int(jax.random.categorical(key, jnp.log(p[-1])))]

    return _named(verify, told)


def _of_count(accepted: Any, told: Any) -> Any:
    def verify(p, q, draft_tokens, key):
        count_key, token_key = jax.random.split(key)
        places = jnp.arange(len(draft_tokens))
        count = int(accepted(p[places, draft_tokens], q[places, draft_tokens], count_key))
        row = p[-1] if count == len(draft_tokens) else owed(p[count], q[count])
        return [*draft_tokens[:count].tolist(), int(jax.random.categorical(token_key, jnp.log(row)))]

    return _named(verify, told)


def _of_token(drawn: Any, told: Any) -> Any:
    def verify(p, q, draft_tokens, key):
        for i, token in enumerate(draft_tokens.tolist()):
            key, coin_key, token_key = jax.random.split(key, 3)
            if not jax.random.uniform(coin_key) * q[i, token] < p[i, token]:
                return [*draft_tokens[:i].tolist(), int(drawn(owed(p[i], q[i]), token_key))]
        return [*draft_tokens.tolist(), int(drawn(p[-1], key))]

    return _named(verify, told)


def _named(verify: Any, told: Any) -> Any:
    verify.__name__ = verify.__qualname__ = told.__name__
    verify.__doc__ = told.__doc__
    return verify


coin = partial(_part, "coin", _of_coin, 1)
"""``coin(wrong)``: a function of p and q of one draft and a key that returns whether it is kept."""
count = partial(_part, "count", _of_count, 2)
"""``count(wrong)``: a function of p and q of two drafts and a key that returns how many of them are kept."""
token = partial(_part, "token", _of_token, 1)
"""``token(wrong)``: a function of weights and a key that returns a token drawn from them."""
verifier = partial(_part, "verifier", lambda verify, told: verify, 2)
"""``verifier(wrong)``: a whole rejection sampler."""


def idioms_of(*modules: Any) -> tuple[Idiom, ...]:
    """Return the idioms of some modules, in the order of their definition."""
    return tuple(value for module in modules for value in vars(module).values() if isinstance(value, Idiom))
