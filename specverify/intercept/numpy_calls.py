"""NumPy's random calls, answered by ``draws``: unmodified NumPy code becomes a program that can be enumerated.

    with numpy_answered_by(draws):
        sample(rng=np.random.default_rng(0))

What is looked up on ``np.random`` inside the block is answered: the functions of the module, ``default_rng``,
``Generator`` and ``RandomState``. A method not known here raises ``NeedsValue`` naming it. Not intercepted, and found
by ``program_is_its_draws``: a ``Generator`` or ``RandomState`` made before the block, whose type is written in C, and a
function bound earlier by ``from numpy.random import ...``. Streams of one seed are one stream, see ``streams``. Sites
name the stream and function, and the file and line that called it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from reference import Draws, Site
from specverify.intercept import finite
from specverify.intercept.boundary import LATEST, ONE_BELOW_ONE, TAIL, Boundary
from specverify.intercept.caller import caller
from specverify.intercept.deferred import Continuous
from specverify.intercept.lazy_array import LazyArray
from specverify.intercept.scalars import LazyFloat, refusal, replaced
from specverify.intercept.streams import SeededStream


def fresh(stream: SeededStream, function: str, site: Site, shape: tuple[int, ...] | None) -> Any:
    """Return the next uniform random number of a stream, or an array of them."""
    if shape is None:
        return LazyFloat(Continuous(stream.uniform(site, function)))
    made = np.empty(shape, dtype=object)
    for index in np.ndindex(*shape):
        made[index] = LazyFloat(Continuous(stream.uniform((*site, *index), function)))
    return made.view(LazyArray)


class _Stream:
    """What ``Generator`` and ``RandomState`` have in common."""

    _real: type = object

    def __init__(self, answers: finite.Answers, name: str, seed: Any = None) -> None:
        self._answers, self._name = answers, name
        self._stream = answers.stream(self._real.__name__, seed)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(self._real, name):
            raise AttributeError(f"{self._real.__name__!r} object has no attribute {name!r}")

        def refused(*args: Any, **kwargs: Any) -> Any:
            raise refusal(f"{self._name}.{name} cannot be answered by finitely many outcomes")

        return refused

    def _site(self, function: str) -> tuple[SeededStream, Site]:
        if self._answers.over:
            raise refusal(f"{self._name}.{function} is called after the block it was made in")
        return self._stream, (f"{self._name}.{function}", caller())

    def _uniforms(self, function: str, size: Any, dtype: Any = np.float64) -> Any:
        boundary, largest = self._answers.boundary, ONE_BELOW_ONE if dtype == np.float64 else 1 - 2**-24
        if boundary is not None:
            return self._forced(boundary, function, size, lambda call: boundary.uniform(call, largest), dtype)
        stream, site = self._site(function)
        return fresh(stream, function, site, None if size is None else tuple(int(n) for n in np.atleast_1d(size)))

    def _exponentials(self, function: str, size: Any, smallest: float, largest: float) -> Any:
        boundary = self._answers.boundary
        if boundary is None:
            return -np.log(self._uniforms(function, size))
        return self._forced(boundary, function, size, lambda call: boundary.exponential(call, smallest, largest))

    def _forced(
        self, boundary: Boundary, function: str, size: Any, number: Callable[[str], float], dtype: Any = np.float64
    ) -> Any:
        call = str(self._site(function)[1][0])
        if size is None:
            return number(call)
        count = math.prod(np.atleast_1d(size))
        return np.array(boundary.several(count, lambda: number(call)), dtype).reshape(size)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        shape = np.broadcast_shapes(np.shape(low), np.shape(high))
        width = np.asarray(high) - np.asarray(low) if shape else high - low
        return width * self._uniforms("uniform", (shape or None) if size is None else size) + low

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        boundary = self._answers.boundary
        if boundary is not None:
            return scale * self._forced(boundary, "gumbel", size, boundary.gumbel) + loc
        return scale * -np.log(-np.log(self._uniforms("gumbel", size))) + loc

    def choice(self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0,
               shuffle: bool = True) -> Any:  # fmt: skip
        draws, site = self._site("choice")
        number = int(a) if np.ndim(a) == 0 else np.shape(a)[axis]
        if number > finite.MOST_OUTCOMES:
            raise refusal(f"{site[0]} has {number} outcomes, more than can be enumerated")
        count = 1 if size is None else math.prod(np.atleast_1d(size).tolist())
        pmf = finite.masses(p, number)
        if replace:
            found = [draws.categorical(pmf, (*site, position)) for position in range(count)]
        elif count > np.count_nonzero(pmf):
            raise ValueError(f"Cannot take a sample of {count} without replacement from {np.count_nonzero(pmf)}")
        elif p is None and not shuffle:
            raise refusal(f"{site[0]} is asked for an order that is not random")
        else:
            found = finite.one_by_one(draws, site, pmf, count)
        places = found[0] if size is None else np.array(found, dtype=np.int64).reshape(size)
        return np.take(np.arange(number) if np.ndim(a) == 0 else np.asarray(a), places, axis)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        draws, site = self._site("binomial")
        shape = np.broadcast_shapes(np.shape(n), np.shape(p)) if size is None else size
        trials, chances = np.broadcast_to(n, shape), np.broadcast_to(p, shape)
        if not ((chances >= 0) & (chances <= 1)).all():
            raise ValueError("p < 0, p > 1 or p is NaN")
        return finite.filled(
            shape, lambda index: finite.heads(draws, (*site, *index), int(trials[index]), float(chances[index]))
        )

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
            found[index] = finite.counts(draws, (*site, *index), int(n), pmf / pmf.sum())
        return found

    def _integers(self, function: str, low: Any, high: Any, size: Any, dtype: Any) -> Any:
        """Draw from [low, high)."""
        draws, site = self._site(function)
        if np.ndim(low) or np.ndim(high):
            raise refusal(f"{site[0]} has arrays of bounds")
        if low >= high:
            raise ValueError("low >= high")
        return finite.filled(
            size, lambda index: int(low) + finite.one_of(draws, (*site, *index), int(high) - int(low)), dtype
        )

    def _order(self, function: str, number: int) -> list[int]:
        return finite.shuffled(*self._site(function), number)

    def permutation(self, x: Any, axis: int = 0) -> Any:
        whole = np.arange(x) if np.ndim(x) == 0 else np.asarray(x)
        return np.take(whole, self._order("permutation", whole.shape[axis]), axis)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        order = self._order("shuffle", x.shape[axis] if isinstance(x, np.ndarray) else len(x))
        x[:] = np.take(x, order, axis) if isinstance(x, np.ndarray) else [x[place] for place in order]


class _Generator(_Stream):
    """finite.Answers as ``np.random.Generator``."""

    _real = np.random.Generator

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        _no_out(out)
        return self._uniforms("random", size, np.dtype(dtype))

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        return scale * self._exponentials("exponential", size, 0.0, TAIL + LATEST)

    def standard_exponential(self, size: Any = None, dtype: Any = np.float64, method: str = "zig",
                             out: Any = None) -> Any:  # fmt: skip
        _no_out(out)
        latest = LATEST if np.dtype(dtype) == np.float64 else -math.log(2**-24)
        return self._exponentials("standard_exponential", size, 0.0, latest + (TAIL if method == "zig" else 0))

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
    """finite.Answers as ``np.random.RandomState``, and as the functions of the module."""

    _real = np.random.RandomState

    def seed(self, seed: Any = None) -> None:
        self._name = f"{self._name.split(' ')[0]} seed({finite.shown(seed)})"
        self._stream = self._answers.stream(self._real.__name__, seed)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        return scale * self._exponentials("exponential", size, -0.0, LATEST)

    def standard_exponential(self, size: Any = None) -> Any:
        return self._exponentials("standard_exponential", size, -0.0, LATEST)

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
def numpy_answered_by(draws: Draws, forced_uniform: float | Boundary | None = None) -> Iterator[None]:
    """Answer NumPy's random calls by ``draws`` inside the block.

    ``forced_uniform`` gives every uniform that value instead (0, or 1 for the largest float below it).
    """
    answers = finite.Answers(draws, forced_uniform)
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


def _constructor(kind: Any, answers: finite.Answers, named: str) -> type[_Stream]:
    def init(self: _Stream, seed: Any = None, name: str = named) -> None:
        kind.__init__(self, answers, f"{name}({finite.shown(seed)})", seed)

    return type(kind._real.__name__, (kind,), {"__init__": init})  # noqa: SLF001


def _no_out(out: Any) -> None:
    if out is not None:
        raise refusal("random numbers are written into an array of floats")
