"""NumPy's random calls, answered by ``draws``: unmodified NumPy code becomes a program that can be enumerated.

    with numpy_answered_by(draws):
        sample(rng=np.random.default_rng(0))

What is looked up on ``np.random`` inside the block is answered: the functions of the module, ``default_rng``,
``Generator`` and ``RandomState``. A method not known here raises ``NeedsValue`` naming it. Not intercepted, and found
by ``program_is_its_draws``: a ``Generator`` or ``RandomState`` made before the block, whose type is written in C, and a
function bound earlier by ``from numpy.random import ...``. Seeds only name streams: two streams of one seed are
independent here. Sites name the stream and function, and the file and line that called it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, SupportsIndex

import numpy as np

from reference import Draws, Site
from specverify.intercept import random_calls
from specverify.intercept.deferred import Continuous, Uniform
from specverify.intercept.random_calls import ONE_BELOW_ONE, Answers, filled, one_by_one, one_of, shown
from specverify.intercept.scalars import LazyFloat, caller, looked_up, refusal, replaced, winner


class LazyArray(np.ndarray[Any, Any]):
    """An object array of ``LazyFloat`` and numbers; what is computed of it without them is an ordinary array."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Apply the function to every element, numbers as NumPy would, random numbers by their own methods."""
        plain = [_plain(value) for value in inputs]
        if "out" in kwargs:
            kwargs["out"] = tuple(_plain(value) for value in kwargs["out"])
        if method == "__call__" and ufunc.nin == 1 and ufunc not in {np.negative, np.positive} and "out" not in kwargs:
            each = np.frompyfunc(lambda e: ufunc(e if isinstance(e, LazyFloat) else np.float64(e)), 1, 1)
            try:
                return _lazy(each(*plain))
            except TypeError:
                raise refusal(f"np.{ufunc.__name__} needs the value of a random number") from None
        return _lazy(getattr(ufunc, method)(*plain, **kwargs))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Answer the functions that would compare elements with each other; run the others."""
        if func in _FUNCTIONS:
            return _FUNCTIONS[func](*args, **kwargs)
        return _lazy(super().__array_function__(func, types, args, kwargs))

    def argmax(self, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        """Return the index of the largest, which random numbers race for."""
        return _extreme(self, axis, out, keepdims, largest=True)

    def argmin(self, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        """Return the index of the smallest, which random numbers race for."""
        return _extreme(self, axis, out, keepdims, largest=False)

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """Return it as it is for another floating type: it has no digits to lose."""
        return self.copy() if np.issubdtype(dtype, np.floating) else super().astype(dtype, *args, **kwargs)


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, LazyArray) else value


def _lazy(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.view(LazyArray if value.dtype == object else np.ndarray)
    return type(value)(map(_lazy, value)) if type(value) in {list, tuple} else value


def _extreme(array: Any, axis: SupportsIndex | None, out: Any, keepdims: Any, *, largest: bool) -> Any:
    found = _plain(np.asanyarray(array))
    if found.dtype != object or out is not None:
        return (np.argmax if largest else np.argmin)(found, axis, out, keepdims=keepdims is True)
    rows = found.reshape(-1) if axis is None else np.moveaxis(found, axis, -1)
    winners = np.empty(rows.shape[:-1], dtype=np.int64)
    for index in np.ndindex(*winners.shape):
        winners[index] = winner(rows[index], largest=largest)
    if keepdims is True:
        return winners.reshape((1,) * found.ndim) if axis is None else np.expand_dims(winners, axis)
    return winners[()]


def _searched(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    bounds = np.asarray(a)[... if sorter is None else sorter].tolist()
    places = [looked_up(bounds, value, side) for value in np.asarray(v, dtype=object).flat]
    return np.array(places, dtype=np.int64).reshape(np.shape(v))[()]


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.argmax: lambda a, axis=None, out=None, *, keepdims=False: _extreme(a, axis, out, keepdims, largest=True),
    np.argmin: lambda a, axis=None, out=None, *, keepdims=False: _extreme(a, axis, out, keepdims, largest=False),
    np.searchsorted: _searched,
    np.digitize: lambda x, bins, right=False: _searched(bins, x, "left" if right else "right"),
}


def fresh(draws: Draws, site: Site, shape: tuple[int, ...] | None) -> Any:
    """Return a new uniform random number, or an array of them."""
    if shape is None:
        return LazyFloat(Continuous(Uniform(draws, site)))
    made = np.empty(shape, dtype=object)
    for index in np.ndindex(*shape):
        made[index] = LazyFloat(Continuous(Uniform(draws, (*site, *index))))
    return made.view(LazyArray)


class _Stream:
    """What ``Generator`` and ``RandomState`` have in common."""

    _real: type = object

    def __init__(self, answers: Answers, name: str) -> None:
        self._answers, self._name = answers, name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(self._real, name):
            raise AttributeError(f"{self._real.__name__!r} object has no attribute {name!r}")

        def refused(*args: Any, **kwargs: Any) -> Any:
            raise refusal(f"{self._name}.{name} cannot be answered by finitely many outcomes")

        return refused

    def _site(self, function: str) -> tuple[Draws, Site]:
        if self._answers.over:
            raise refusal(f"{self._name}.{function} is called after the block it was made in")
        return self._answers.draws, (f"{self._name}.{function}", caller())

    def _uniforms(self, function: str, size: Any, least: float = 0.0) -> Any:
        draws, site = self._site(function)
        shape = None if size is None else tuple(int(n) for n in np.atleast_1d(size))
        if self._answers.forced is None:
            return fresh(draws, site, shape)
        value = float(min(max(self._answers.forced, least), ONE_BELOW_ONE))
        return value if shape is None else np.full(shape, value)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        shape = np.broadcast_shapes(np.shape(low), np.shape(high))
        width = np.asarray(high) - np.asarray(low) if shape else high - low
        return width * self._uniforms("uniform", (shape or None) if size is None else size) + low

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        return scale * -np.log(self._uniforms("exponential", size, least=2**-53))

    def standard_exponential(self, size: Any = None, *_: Any, out: Any = None, **__: Any) -> Any:
        _no_out(out)
        return -np.log(self._uniforms("standard_exponential", size, least=2**-53))

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return scale * -np.log(-np.log(self._uniforms("gumbel", size, least=2**-53))) + loc

    def choice(self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0,
               shuffle: bool = True) -> Any:  # fmt: skip
        draws, site = self._site("choice")
        number = int(a) if np.ndim(a) == 0 else np.shape(a)[axis]
        if number > random_calls.MOST_OUTCOMES:
            raise refusal(f"{site[0]} has {number} outcomes, more than can be enumerated")
        count = 1 if size is None else math.prod(np.atleast_1d(size).tolist())
        pmf = random_calls.masses(p, number)
        if replace:
            found = [draws.categorical(pmf, (*site, position)) for position in range(count)]
        elif count > np.count_nonzero(pmf):
            raise ValueError(f"Cannot take a sample of {count} without replacement from {np.count_nonzero(pmf)}")
        elif p is None and not shuffle:
            raise refusal(f"{site[0]} is asked for an order that is not random")
        else:
            found = one_by_one(draws, pmf, count, site)
        places = found[0] if size is None else np.array(found, dtype=np.int64).reshape(size)
        return np.take(np.arange(number) if np.ndim(a) == 0 else np.asarray(a), places, axis)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        draws, site = self._site("binomial")
        shape = np.broadcast_shapes(np.shape(n), np.shape(p)) if size is None else size
        trials, chances = np.broadcast_to(n, shape), np.broadcast_to(p, shape)
        if not ((chances >= 0) & (chances <= 1)).all():
            raise ValueError("p < 0, p > 1 or p is NaN")
        heads = random_calls.heads
        return filled(shape, lambda index: heads(draws, int(trials[index]), float(chances[index]), (*site, *index)))

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Any:
        draws, site = self._site("multinomial")
        rows = np.asarray(pvals, dtype=np.float64)
        if not ((rows >= 0) & (rows <= 1)).all() or (rows[..., :-1].sum(-1) > 1 + 1e-12).any():
            raise ValueError("pvals < 0, pvals > 1, pvals contains NaNs or sum(pvals[:-1]) > 1.0")
        if size is not None:
            rows = np.broadcast_to(rows, (*np.atleast_1d(size), rows.shape[-1]))
        found = np.zeros(rows.shape, dtype=np.int64)
        for index in np.ndindex(*rows.shape[:-1]):
            pmf = np.append(rows[index][:-1], max(0.0, 1 - rows[index][:-1].sum()))
            found[index] = random_calls.counts(draws, int(n), pmf / pmf.sum(), (*site, *index))
        return found

    def _integers(self, function: str, low: Any, high: Any, size: Any, dtype: Any) -> Any:
        """Draw from [low, high)."""
        draws, site = self._site(function)
        if np.ndim(low) or np.ndim(high):
            raise refusal(f"{site[0]} has arrays of bounds")
        if low >= high:
            raise ValueError("low >= high")
        return filled(size, lambda index: int(low) + one_of(draws, int(high) - int(low), (*site, *index)), dtype)

    def _order(self, function: str, number: int) -> list[int]:
        return random_calls.shuffled(*self._site(function), number)

    def permutation(self, x: Any, axis: int = 0) -> Any:
        whole = np.arange(x) if np.ndim(x) == 0 else np.asarray(x)
        return np.take(whole, self._order("permutation", whole.shape[axis]), axis)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        order = self._order("shuffle", x.shape[axis] if isinstance(x, np.ndarray) else len(x))
        x[:] = np.take(x, order, axis) if isinstance(x, np.ndarray) else [x[place] for place in order]


class _Generator(_Stream):
    """Answers as ``np.random.Generator``."""

    _real = np.random.Generator

    def random(self, size: Any = None, dtype: Any = None, out: Any = None) -> Any:  # noqa: ARG002 - it has no digits
        _no_out(out)
        return self._uniforms("random", size)

    def integers(self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64,
                 endpoint: bool = False) -> Any:  # fmt: skip
        low, high = (0, low) if high is None else (low, high)
        return self._integers("integers", low, np.add(high, bool(endpoint)), size, np.dtype(dtype).type)

    def permuted(self, x: Any, axis: int | None = None, out: Any = None) -> Any:
        _no_out(out)
        whole = np.array(x)
        rows = whole.reshape(-1) if axis is None else np.moveaxis(whole, axis, -1)
        for index in np.ndindex(*rows.shape[:-1]):
            rows[index] = rows[index][self._order("permuted", rows.shape[-1])]
        return whole


class _RandomState(_Stream):
    """Answers as ``np.random.RandomState``, and as the functions of the module."""

    _real = np.random.RandomState

    def seed(self, seed: Any = None) -> None:
        self._name = f"{self._name.split(' ')[0]} seed({shown(seed)})"

    def random_sample(self, size: Any = None) -> Any:
        return self._uniforms("random_sample", size)

    def random(self, size: Any = None) -> Any:
        return self._uniforms("random", size)

    def rand(self, *dims: int) -> Any:
        return self._uniforms("rand", dims or None)

    def randint(self, low: Any, high: Any = None, size: Any = None, dtype: Any = int) -> Any:
        low, high = (0, low) if high is None else (low, high)
        return self._integers("randint", low, high, size, dtype)


_MODULE = [name for name in dir(np.random.RandomState) if hasattr(np.random, name) and not name.startswith("_")]


@contextmanager
def numpy_answered_by(draws: Draws, forced_uniform: float | None = None) -> Iterator[None]:
    """Answer NumPy's random calls by ``draws`` inside the block.

    ``forced_uniform`` gives every uniform that value instead (0, or 1 for the largest float below it).
    """
    answers = Answers(draws, forced_uniform)
    state = _RandomState(answers, "np.random")
    values = {name: getattr(state, name) for name in _MODULE}
    values |= {"ranf": state.random_sample, "sample": state.random_sample}
    values["RandomState"] = _constructor(_RandomState, answers, "np.random.RandomState")
    made: Any = _constructor(_Generator, answers, "np.random.Generator")

    def default_rng(seed: Any = None) -> Any:
        return seed if isinstance(seed, _Generator) else made(seed, "np.random.default_rng")

    top = {"Generator": made, "default_rng": default_rng}
    try:
        with replaced(np.random, values | top), replaced(np.random.mtrand, values | {"_rand": state}):
            yield
    finally:
        answers.over = True


def _constructor(kind: Any, answers: Answers, named: str) -> type[_Stream]:
    def init(self: _Stream, seed: Any = None, name: str = named) -> None:
        kind.__init__(self, answers, f"{name}({shown(seed)})")

    return type(kind._real.__name__, (kind,), {"__init__": init})  # noqa: SLF001


def _no_out(out: Any) -> None:
    if out is not None:
        raise refusal("random numbers are written into an array of floats")
