# ruff: noqa: D102 - the methods are those of the library
"""Intercept NumPy's random calls: unmodified NumPy code becomes a program that can be enumerated.

    with numpy_answered_by(draws):
        sample(rng=np.random.default_rng(0))

In the ``with`` block ``draws`` chooses the results of the functions of ``np.random``, and of the methods of every
``Generator`` and ``RandomState``. This includes generators made before the block, because the methods of the types are
replaced. A bound method that was stored before the block is replaced where it is stored. A method without a rule raises
``NeedsValue`` with its name. The real generators are advanced and restored, so two generators with one state give one
stream (``streams``). A site, the name of a draw, has the generator, the function, and the file and line that called it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from types import MethodType
from typing import Any

import numpy as np

from specverify.intercept.caller import draw_line
from specverify.intercept.cpython.patches import count_nonzero, methods_replaced, once, own_methods, replaced
from specverify.intercept.distributions import (
    FINITE,
    FOLLOWED_AT_ONCE,
    FOLLOWED_IN_ARRAYS,
    LATEST,
    MOST_PERMUTED,
    MOST_WHOLE,
    ONE_BELOW_ONE,
    TAIL,
    Boundary,
    Distribution,
    FiniteLaw,
    Forced,
    Parameters,
    bound,
    check_shuffled,
    counts,
    drawn_out,
    filled,
    heads,
    masses,
    one_by_one,
    one_of,
    seed_name,
    shuffled,
    spelled,
)
from specverify.intercept.recorder import Recorder
from specverify.intercept.refusals import RuleDeclined, is_left_to_library
from specverify.intercept.run import PROCESS, answering, nobody_answers
from specverify.intercept.streams import NEXT_DOUBLE, AnsweredCall, Answers, AnswersOf
from specverify.intercept.symbolic.arrays import SymbolicArray, VectorArray, as_array, taken_out
from specverify.intercept.symbolic.buffers import Buffer
from specverify.intercept.symbolic.continuous import MOST_OUTCOMES, Continuous
from specverify.intercept.symbolic.deferred import OutcomeNumber
from specverify.intercept.symbolic.large import MANY, at_large_now, check_numbers, check_outcomes, large
from specverify.intercept.symbolic.numbers import (
    SymbolicFloat,
    SymbolicInt,
    opened,
    settled,
    with_foreign_line,
    wrapped,
)
from specverify.intercept.symbolic.primitives import OF_SCALARS, OF_VECTORS
from specverify.intercept.symbolic.uniform import refusal
from specverify.intercept.symbolic.vectors import uniforms
from specverify.reference import Draws, Site

# One generator

# Laws


def _of_row(method: str, law: Distribution, parameters: Parameters) -> Callable[..., Any]:
    """Return the replacement of ``method`` of NumPy's generators, which draws from ``law``.

    ``parameters`` are the names and defaults of the parameters of the method.
    """

    def answer(generator: NumpyGenerator, *args: Any, size: Any = None, out: Any = None, dtype: Any = np.float64,
               **named: Any) -> Any:  # fmt: skip
        given, rest = bound(parameters, args, named)
        size, digits = _of_out(out, rest[0] if rest else size), np.dtype(dtype).name
        return _into(out, generator.law(method, law, parameters, given, size, digits))

    return answer


def _of_finite(method: str, law: FiniteLaw, parameters: Parameters) -> Callable[..., Any]:
    def answer(generator: NumpyGenerator, *args: Any, size: Any = None, **named: Any) -> Any:
        given, rest = bound(parameters, args, named)
        return generator.finite(method, law, given, rest[0] if rest else size)

    return answer


LAWS: dict[str, Callable[..., Any]] = {
    **{method: _of_row(method, *row) for method, row in spelled("numpy").items()},
    **{method: _of_finite(method, law, given) for law in FINITE.values() for method, given in law.numpy.items()},
    "randn": lambda generator, *dims: LAWS["standard_normal"](generator, dims or None),
}
"""Method name -> replacement that draws from the method's law."""


def _image(law: Distribution, noise: Any, given: list[Any]) -> Any:
    """Return numbers of ``law`` with the parameters ``given``, each computed from a number of ``noise``.

    ``noise`` is one uniform or exponential number, an array of them, or a noise vector. If ``noise`` is symbolic, the
    result is symbolic too.
    """
    if isinstance(noise, VectorArray) and noise.many is not None:
        with suppress(RuleDeclined):
            return as_array(with_foreign_line(law.image, OF_VECTORS, noise.many, *given))
    noise = taken_out(noise)
    if not isinstance(noise, np.ndarray):
        return _number(law, noise, given)
    arrays = np.broadcast_arrays(np.asarray(noise.view(np.ndarray), dtype=object), *given)
    result = np.empty(arrays[0].shape, dtype=object)
    for index in np.ndindex(*result.shape):
        result[index] = _number(law, arrays[0][index], [each[index] for each in arrays[1:]])
    if all(isinstance(each, np.generic) for each in result.flat):
        return result.astype(np.int64 if law.whole else np.float64)
    return result.view(SymbolicArray)


def _number(law: Distribution, noise: Any, given: list[Any]) -> Any:
    result = with_foreign_line(law.image, OF_SCALARS, opened(noise), *given)
    if not isinstance(result, float | int):
        return wrapped(result)
    return np.int64(min(result, MOST_WHOLE)) if law.whole else np.float64(result)


REAL: dict[type, dict[str, Any]] = {
    kind: dict(own_methods(kind)) for kind in (np.random.Generator, np.random.RandomState)
}
"""Generator type -> its unpatched methods, by name."""
_DOUBLE = {np.random.Generator: "random", np.random.RandomState: "random_sample"}
_OWN_NUMBER = {"exponential", "standard_exponential", "gumbel"}
"""Functions whose values are not made from one double of the stream."""
_POOL = 16
"""In a population of more entries than this, equal entries are merged into one outcome, since a token may be repeated
in proportion to its probability."""


class NumpyGenerator:
    """A replacement of a ``Generator`` or ``RandomState``: NumPy's method signatures, with intercepted draws."""

    def __init__(self, answers: Answers, real: Any) -> None:
        """Replace the generator ``real``; ``answers`` holds the source of draws and the states of generators."""
        self._answers, self._real = answers, real
        self._kind = np.random.RandomState if isinstance(real, np.random.RandomState) else np.random.Generator
        self._name = answers.name(real, f"np.random.{self._kind.__name__}")

    def _asked(
        self, function: str, advance: Callable[[], Any], parameters: Any = None, *, in_pairs: bool = False
    ) -> tuple[AnsweredCall, Site]:
        site: Site = (f"{self._name}.{function}", draw_line())
        return self._opened(site, function, advance, parameters, in_pairs=in_pairs), site

    def _opened(
        self, site: Site, function: str, advance: Callable[[], Any], parameters: Any = None, *, in_pairs: bool = False
    ) -> AnsweredCall:
        in_pairs = in_pairs and self._kind is np.random.RandomState
        return self._answers.open_call(self._real, site, f"{function}{parameters or ''}", advance, in_pairs=in_pairs)

    def _call(self, function: str, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        return partial(REAL[self._kind][function], self._real, *args, **kwargs)

    def uniforms(
        self, function: str, size: Any, digits: str = "float64", parameters: Any = None, *, in_pairs: bool = False
    ) -> Any:
        """Return the next uniform number of the generator, or an array of them if ``size`` is given.

        The real generator is advanced too, by a call of the library.

        Args:
            function: The name of the method that the program calls.
            size: Shape of the array; None for one number.
            digits: The name of the dtype, such as "float32".
            parameters: If given, the real generator is advanced by ``function`` with these arguments. With None, it is
                advanced by its method for one float64 uniform number, such as ``random``. Exception: ``exponential``,
                ``standard_exponential`` and ``gumbel``, whose values are not made from one such number, are called
                themselves, without arguments.
            in_pairs: Whether the library makes two numbers at once and caches the second.
        """
        check_numbers(f"{self._name}.{function}", size)
        boundary, largest = self._answers.boundary, ONE_BELOW_ONE if digits == "float64" else 1 - 2**-24
        own = function in _OWN_NUMBER or parameters is not None
        one = self._call(function if own else _DOUBLE[self._kind], *(parameters or ()))
        if boundary is not None:
            if not own:
                self._answers.force(self._real, one, 1 if size is None else math.prod(np.atleast_1d(size).tolist()))
            return self._forced(boundary, function, size, lambda call: boundary.uniform(call, largest), digits)
        shape = None if size is None else tuple(int(n) for n in np.atleast_1d(size))
        if shape is None:
            call, site = self._asked(function, one, parameters, in_pairs=in_pairs)
            return SymbolicFloat(Continuous(call.uniform(site, digits)))
        if large(math.prod(shape), MANY):
            call, site = self._asked(function, partial(one, size=shape), parameters, in_pairs=in_pairs)
            return as_array(uniforms(call.block(site, shape, digits), shape))
        made, site = np.empty(shape, dtype=object), (f"{self._name}.{function}", draw_line())
        for index in np.ndindex(*shape):
            call = self._opened(site, function, one, parameters, in_pairs=in_pairs)
            made[index] = SymbolicFloat(Continuous(call.uniform((*site, *index), digits)))
        return made.view(SymbolicArray)

    def law(
        self, method: str, law: Distribution, parameters: Parameters, given: list[Any], size: Any, digits: str
    ) -> Any:
        """Return numbers drawn from ``law`` by ``method``: one number if ``size`` is None, else an array.

        ``given`` are the values of the method's ``parameters``, ``digits`` is the name of the dtype.
        """
        if not any(map(np.ndim, given)):
            with nobody_answers():
                self._call(method, *given, size=0)()  # which refuses wrong parameters, and draws nothing
        elif law.standard is None:
            raise refusal("parameters", f"{method} is answered where its parameters are numbers")
        drawn = tuple(given if law.standard is None else law.standard if parameters else ())
        shape = shape_of(size, *given)
        if law.exponential:
            noise = self.exponentials(method, shape, parameters=drawn)
        else:
            noise = self.uniforms(method, shape, digits, parameters=drawn, in_pairs=law.in_pairs)
        return _array_of(size, _image(law, noise, given))

    def finite(self, method: str, law: FiniteLaw, given: list[Any], size: Any) -> Any:
        """Return integers drawn from ``law`` by ``method``: one if ``size`` is None, else an array.

        ``given`` are the values of the method's parameters.
        """
        check_numbers(f"{self._name}.{method}", size)
        draws, site = self._asked(method, self._call(method, *given, size), in_pairs=True)
        shape = np.broadcast_shapes(*map(np.shape, given)) if size is None else size
        rows = [np.broadcast_to(number, shape) for number in given]
        return filled(
            shape,
            lambda index: law.first + draws.categorical(law.pmf(*(float(row[index]) for row in rows)), (*site, *index)),
        )

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        shape = np.broadcast_shapes(np.shape(low), np.shape(high))
        width = np.asarray(high) - np.asarray(low) if shape else high - low
        return _array_of(size, width * self.uniforms("uniform", (shape or None) if size is None else size) + low)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        return _array_of(size, scale * self.exponentials("exponential", shape_of(size, scale)))

    def standard_exponential(self, size: Any = None, dtype: Any = np.float64, method: str = "zig",
                             out: Any = None) -> Any:  # fmt: skip
        drawn = self.exponentials("standard_exponential", _of_out(out, size), np.dtype(dtype).name, method)
        return _into(out, drawn)

    def exponentials(
        self, function: str, size: Any, digits: str = "float64", method: str = "zig", parameters: Any = None
    ) -> Any:
        """Return the next exponential number of rate 1, or an array of them if ``size`` is given.

        ``function`` is the called method, ``digits`` the name of the dtype. ``method`` is the argument of NumPy: "zig"
        (ziggurat) or "inv" (inverse). ``parameters`` are as for ``uniforms``.
        """
        boundary, legacy = self._answers.boundary, self._kind is np.random.RandomState
        if boundary is None:
            return _array_of(size, -np.log(self.uniforms(function, size, parameters=parameters)))
        largest = (LATEST if digits == "float64" else -math.log(2**-24)) + TAIL * (method == "zig" and not legacy)
        smallest, least = -0.0 if legacy else 0.0, 2.0**-53 if digits == "float64" else 2.0**-23
        return self._forced(boundary, function, size, lambda call: boundary.exponential(call, smallest, largest, least))

    def _forced(
        self, boundary: Boundary, function: str, size: Any, number: Callable[[str], float], digits: str = "float64"
    ) -> Any:
        """Return the next number of ``function``, or an array of them, with the fixed values of ``boundary``.

        ``number(call)`` returns the next of these values; ``call`` is the name of the call for messages. ``size`` is
        the shape of the array (None: one number), and ``digits`` the name of its dtype.
        """
        call = f"{self._name}.{function}"
        check_numbers(call, size)
        if size is None:
            return number(call)
        count = math.prod(np.atleast_1d(size))
        result = np.array(boundary.several(count, lambda: number(call)), digits)
        return result.reshape(size).copy()  # it has its data to itself, as the library's has

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        boundary, shape = self._answers.boundary, shape_of(size, loc, scale)
        if boundary is not None:
            noise = self._forced(boundary, "gumbel", shape, boundary.gumbel)
        else:
            noise = -np.log(-np.log(self.uniforms("gumbel", shape)))
        moved = noise if type(loc) is type(scale) is float and (loc, scale) == (0.0, 1.0) else scale * noise + loc
        return _array_of(size, moved)

    def choice(self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0,
               shuffle: bool = True) -> Any:  # fmt: skip
        more = {"axis": axis, "shuffle": shuffle} if self._kind is np.random.Generator else {}
        dimensions = 0 if type(a) is int else np.ndim(a)
        number, name = int(a) if dimensions == 0 else np.shape(a)[axis], f"{self._name}.choice"
        check_numbers(name, size)
        check_outcomes(name, number)
        if dimensions == 0 and p is None:
            _check_enumerated(name, number)
        looks_up = p is not None and replace  # the library looks one double up for each entry, if the weights are right
        pmf = masses(p, number) if looks_up else None
        advance = self._call(_DOUBLE[self._kind]) if looks_up else self._call("choice", a, size, replace, p, **more)
        draws, site = self._asked("choice", advance)
        if pmf is None:
            pmf = masses(p, number)
        double = NEXT_DOUBLE if looks_up else None
        if replace and dimensions == 1 and number > _POOL and np.asarray(a).dtype != object:  # which may have no order
            a, which = np.unique(a, return_inverse=True)
            number, pmf, double = len(a), np.bincount(which, pmf), None
        possible = int(count_nonzero(pmf))
        _check_enumerated(name, possible)
        if size is None and dimensions == 0 and possible > 1 and may_stand() and not self._has_values():
            return OutcomeNumber(draws.outcome(pmf, (*site, 0), double))
        count = 1 if size is None else math.prod(np.atleast_1d(size).tolist())
        if replace:
            calls = [draws] * count
            if looks_up:
                calls[1:] = [self._asked("choice", advance)[0] for _ in calls[1:]]
            result = [call.categorical(pmf, (*site, position), double) for position, call in enumerate(calls)]
        elif count > np.count_nonzero(pmf):
            raise ValueError(f"Cannot take a sample of {count} without replacement from {np.count_nonzero(pmf)}")
        elif p is None and not shuffle:
            raise refusal("parameters", f"{site[0]} is called for an order that is not random")
        else:
            result = one_by_one(draws, site, pmf, count)
        if size is None and dimensions == 0:
            return int(result[0])
        places = result[0] if size is None else np.array(result, dtype=np.int64).reshape(size)
        return np.take(np.arange(number) if dimensions == 0 else np.asarray(a), places, axis)

    def _has_values(self) -> bool:
        """Return whether the run has a list of values for its random numbers, so that no number is symbolic."""
        return self._answers.boundary is not None and self._answers.boundary.has_values

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        check_numbers(f"{self._name}.binomial", size)
        draws, site = self._asked("binomial", self._call("binomial", n, p, size))
        shape = np.broadcast_shapes(np.shape(n), np.shape(p)) if size is None else size
        trials, chances = np.broadcast_to(n, shape), np.broadcast_to(p, shape)
        if not ((chances >= 0) & (chances <= 1)).all():
            raise ValueError("p < 0, p > 1 or p is NaN")
        return filled(shape, lambda index: heads(draws, (*site, *index), int(trials[index]), float(chances[index])))

    def hypergeometric(self, ngood: Any, nbad: Any, nsample: Any, size: Any = None) -> Any:
        check_numbers(f"{self._name}.hypergeometric", size)
        advance = self._call("hypergeometric", ngood, nbad, nsample, size)
        draws, site = self._asked("hypergeometric", advance)
        shape = np.broadcast_shapes(*map(np.shape, (ngood, nbad, nsample))) if size is None else size
        good, bad, taken = (np.broadcast_to(number, shape) for number in (ngood, nbad, nsample))
        return filled(
            shape,
            lambda index: drawn_out(draws, (*site, *index), *(int(each[index]) for each in (good, bad, taken))),
        )

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Any:
        check_numbers(f"{self._name}.multinomial", size)
        draws, site = self._asked("multinomial", self._call("multinomial", n, pvals, size))
        rows = np.asarray(pvals, dtype=np.float64)
        if not ((rows >= 0) & (rows <= 1)).all() or (rows[..., :-1].sum(-1) > 1 + 1e-12).any():
            raise ValueError("pvals < 0, pvals > 1, pvals contains NaNs or sum(pvals[:-1]) > 1.0")
        if size is not None:
            rows = np.broadcast_to(rows, (*np.atleast_1d(size), rows.shape[-1]))
        result = np.zeros(rows.shape, dtype=np.int64)
        for index in np.ndindex(*rows.shape[:-1]):
            pmf = np.append(rows[index][:-1], max(0.0, 1 - rows[index][:-1].sum()))
            result[index] = counts(draws, (*site, *index), int(n), pmf / pmf.sum())
        return result

    def integers(self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64,
                 endpoint: bool = False) -> Any:  # fmt: skip
        advance = self._call("integers", low, high, size, dtype, endpoint)
        low, high = (0, low) if high is None else (low, high)
        return self._whole(
            "integers", advance, low, high + bool(endpoint) if np.ndim(high) == 0 else high, size, np.dtype(dtype).type
        )

    def randint(self, low: Any, high: Any = None, size: Any = None, dtype: Any = int) -> Any:
        advance = self._call("randint", low, high, size, dtype)
        low, high = (0, low) if high is None else (low, high)
        kind = dtype if isinstance(dtype, type) else np.dtype(dtype).type
        return self._whole("randint", advance, low, high, size, kind)

    def _whole(self, function: str, advance: Callable[[], Any], low: Any, high: Any, size: Any, dtype: Any) -> Any:
        """Return integers from [low, high), drawn by the method ``function``: one if ``size`` is None, else an array.

        ``dtype`` is the type of the integers. ``advance`` advances the real generator by the library's own call.
        """
        check_numbers(f"{self._name}.{function}", size)
        call, site = self._asked(function, advance)
        if np.ndim(low) or np.ndim(high):
            raise refusal("parameters", f"{site[0]} has arrays of bounds")
        if low >= high:
            raise ValueError("low >= high")
        begin, number, boundary = int(low), int(high) - int(low), self._answers.boundary
        if _followed(number, size):
            return filled(size, lambda index: begin + one_of(call, (*site, *index), number), dtype)
        if boundary is not None:
            return self._forced(
                boundary, function, size, lambda name: dtype(boundary.whole(name, begin, number)), dtype
            )
        type_of_integer = np.iinfo(dtype)
        limits = int(type_of_integer.min), int(type_of_integer.max)
        if size is None or size == ():
            return SymbolicInt(call.whole(site, begin, number), limits)
        return filled(
            size, lambda index: SymbolicInt(call.whole((*site, *index), begin, number), limits), np.object_
        ).view(SymbolicArray)

    def _order(self, function: str, number: int) -> list[int]:
        name = f"{self._name}.{function}"
        if number > MOST_PERMUTED:
            check_shuffled(name, number)
        call, site = self._asked(function, self._call("permutation", number))
        with call.noting(site):
            check_shuffled(name, number)
        return shuffled(call, site, number)

    def permutation(self, x: Any, axis: int = 0) -> Any:
        order = self._order("permutation", int(x) if np.ndim(x) == 0 else np.shape(x)[axis])
        return np.take(np.arange(x) if np.ndim(x) == 0 else np.asarray(x), order, axis)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        order = self._order("shuffle", x.shape[axis] if isinstance(x, np.ndarray) else len(x))
        x[:] = np.take(x, order, axis) if isinstance(x, np.ndarray) else [x[place] for place in order]

    def permuted(self, x: Any, axis: int | None = None, out: Any = None) -> Any:
        whole = np.array(x)
        rows = whole.reshape(-1) if axis is None else np.moveaxis(whole, axis, -1)
        for index in np.ndindex(*rows.shape[:-1]):
            rows[index] = rows[index][self._order("permuted", rows.shape[-1])]
        return _into(out, whole)

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        digits = "float64" if dtype is np.float64 else np.dtype(dtype).name
        return _into(out, self.uniforms("random", _of_out(out, size), digits=digits))

    def random_sample(self, size: Any = None) -> Any:
        return self.uniforms("random_sample", size)

    def rand(self, *dims: int) -> Any:
        return self.uniforms("rand", dims or None)

    def refused(self, function: str) -> Any:
        """Raise ``NeedsValue`` for ``function``, the name of a method of NumPy for which there is no rule."""
        raise refusal("no-law", f"{self._name}.{function} cannot be answered by finitely many outcomes")


def _check_enumerated(call: str, number: int) -> None:
    """Raise ``NeedsValue`` if ``number``, the number of outcomes of a draw, exceeds ``MOST_OUTCOMES``.

    In large-vocabulary mode nothing is raised, because one vector then represents all outcomes. ``call`` is the name of
    the drawing call for the message.
    """
    if number > MOST_OUTCOMES and not large(number):
        raise refusal("too-many-outcomes", f"{call} has {number} outcomes, more than can be enumerated")


def may_stand() -> bool:
    """Return whether a drawn integer may be an ``OutcomeNumber`` (symbolic until it is read) instead of an ``int``.

    The result is False if torch or JAX is loaded, because these libraries pass integers to C++. It is also False in
    large-vocabulary mode.
    """
    return not ("torch" in sys.modules or "jax" in sys.modules or at_large_now())


def _followed(number: int, size: Any) -> bool:
    """Return whether drawn integers are enumerated at once, instead of staying symbolic until they are read.

    ``number`` is how many values each integer may have; ``size`` is the shape of their array, or None for one integer.
    """
    if size is None or size == ():
        return number <= FOLLOWED_AT_ONCE
    return bool(float(number) ** math.prod(np.atleast_1d(size).tolist()) <= FOLLOWED_IN_ARRAYS)


def shape_of(size: Any, *parameters: Any) -> Any:
    """Return the shape of the result: ``size``, or the broadcast shape of array parameters if ``size`` is None.

    Return None if ``size`` is None and no parameter is an array: the result is then a single number.
    """
    return np.broadcast_shapes(*map(np.shape, parameters)) or None if size is None else size


def _array_of(size: Any, numbers: Any) -> Any:
    """Return ``numbers`` in the form that NumPy returns for ``size``.

    For size () a single number becomes an array without dimensions. Arrays, and a scalar for size None, are unchanged.
    """
    if size != () or isinstance(numbers, np.ndarray):
        return numbers
    array = np.empty((), dtype=object if isinstance(numbers, SymbolicFloat) else np.float64)
    array[()] = numbers
    return array.view(SymbolicArray) if isinstance(numbers, SymbolicFloat) else array


def _of_out(out: Any, size: Any) -> Any:
    return np.shape(out) if size is None and out is not None else size


def _into(out: Any, numbers: Any) -> Any:
    """Write ``numbers`` into the caller's array ``out`` and return ``out``; if ``out`` is None, return ``numbers``.

    Raises ``NeedsValue`` for symbolic numbers and an array made before interception, which cannot hold them.
    """
    if out is None:
        return numbers
    if isinstance(numbers, SymbolicArray | SymbolicFloat) and not isinstance(out, Buffer):
        said = "random numbers are written into an array of floats that was made before"
        raise refusal("write-not-followed", said, "out=")
    out[...] = numbers
    return out


# Calls

LIBRARY = "numpy"
OWNER: Any = np.random.mtrand._rand  # noqa: SLF001 - np.random's functions draw from it
BIT_GENERATORS = (np.random.BitGenerator, np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox,
                  np.random.SFC64)  # fmt: skip
HARMLESS = {"bit_generator", "spawn", "_bit_generator", "_poisson_lam_max"}
"""Attributes and methods that draw nothing."""
SETS_STATE = {"seed", "set_state", "get_state"}
"""Methods that set or return the state of a stream; the stream then counts as freshly started."""


def _answered(kind: type, function: str) -> Callable[..., Any]:
    real = REAL[kind][function]

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        answers = answering(LIBRARY)
        if answers is None:
            return real(self, *args, **kwargs)
        if is_left_to_library():
            return answers.set_by_program(self, lambda: real(self, *args, **kwargs))
        if isinstance(answers, Recorder):
            return answers.call(LIBRARY, function, real, self, args, kwargs)
        generator = NumpyGenerator(answers, self)
        law = LAWS.get(function)
        answer = getattr(generator, function, None) if law is None else partial(law, generator)
        return generator.refused(function) if answer is None else answer(*args, **kwargs)

    return method


def _sets_state(kind: type, function: str) -> Callable[..., Any]:
    real = REAL[kind][function]

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        answers = answering(LIBRARY)
        if answers is None:
            return real(self, *args, **kwargs)
        if function == "seed":
            name = answers.name(self, "np.random.RandomState").split(" ")[0]
            answers.call_it(self, f"{name} seed({seed_name(args[0] if args else kwargs.get('seed'))})")
        return answers.set_by_program(self, lambda: real(self, *args, **kwargs))

    return method


def _methods(kind: type) -> dict[str, Callable[..., Any]]:
    drawing = [name for name in REAL[kind] if not name.startswith("_") and name not in HARMLESS | SETS_STATE]
    return {name: _answered(kind, name) for name in drawing} | {
        name: _sets_state(kind, name) for name in REAL[kind] if name in SETS_STATE
    }


METHODS: dict[type, dict[str, Callable[..., Any]]] = {kind: _methods(kind) for kind in REAL}
"""Generator type -> the replacements of its methods inside a block."""
PROCESS.methods.update(METHODS)


def _raw(kind: type, function: str) -> Callable[..., Any]:
    real = own_methods(kind)[function]

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if answering(LIBRARY) is not None:
            raise refusal(
                "bits-of-generator",
                f"{kind.__name__}.{function} gives the bits of a generator, which cannot be enumerated",
            )
        return real(self, *args, **kwargs)

    return method


def _moves(kind: type, function: str) -> Any:
    real = own_methods(kind)[function]

    def moving(self: Any, change: Callable[[], Any]) -> Any:
        answers = answering(LIBRARY)
        return change() if answers is None else answers.set_by_program(self, change)

    if not callable(real):  # the state as an attribute
        return property(real.__get__, lambda self, value: moving(self, lambda: real.__set__(self, value)))
    return lambda self, *args, **kwargs: moving(self, lambda: real(self, *args, **kwargs))


def _native(kind: type, attribute: str) -> Any:
    """Return a property that replaces ``attribute`` of the generator type ``kind``, such as ``bit_generator``.

    Native code can draw through this attribute, so reading it is refused while NumPy's calls are intercepted.
    """
    real = own_methods(kind)[attribute]

    def look(self: Any) -> Any:
        if answering(LIBRARY) is not None:
            raise refusal(
                "bits-of-generator", f"{kind.__name__}.{attribute} lets native code draw, which cannot be answered"
            )
        return real.__get__(self)

    return property(look)


_WAYS = {"random_raw": _raw, "ctypes": _native, "cffi": _native, "state": _moves, "advance": _moves, "jumped": _moves}
_BITS = {
    kind: {name: way(kind, name) for name, way in _WAYS.items() if name in own_methods(kind)} for kind in BIT_GENERATORS
}


def _module() -> dict[str, Any]:
    names = [name for name in METHODS[np.random.RandomState] if hasattr(np.random, name)]
    result = {name: MethodType(METHODS[np.random.RandomState][name], OWNER) for name in names}
    more = {"ranf": result["random_sample"], "sample": result["random_sample"], "set_bit_generator": _exchanged}
    return result | {name: method for name, method in more.items() if hasattr(np.random, name)}


def _exchanged(bits: Any) -> None:
    raise refusal(
        "bits-of-generator", "np.random.set_bit_generator exchanges the generator that all others draw from as well"
    )


MODULE = _module()


@once
@contextmanager
def numpy_replaced() -> Iterator[None]:
    """Context manager that patches NumPy's methods; as long as no interception is active, they call the originals."""
    library_default_rng = np.random.default_rng

    def default_rng(seed: Any = None) -> Any:
        seed = settled(seed)
        made = library_default_rng(seed)
        answers = answering(LIBRARY)
        if answers is not None and made is not seed:
            answers.call_it(made, f"np.random.default_rng({seed_name(seed)})")
        return made

    with ExitStack() as stack:
        for kind, methods in (METHODS | _BITS).items():
            stack.enter_context(methods_replaced(kind, methods))
        stack.enter_context(replaced(np.random, MODULE | {"default_rng": default_rng}))
        stack.enter_context(replaced(np.random.mtrand, MODULE))
        yield


@contextmanager
def numpy_answered_by(draws: Draws, forced_uniform: Forced = None) -> Iterator[None]:
    """Let ``draws`` choose the results of NumPy's random calls while the ``with`` block runs.

    ``forced_uniform`` 0 or 1 gives every uniform the value 0 or the largest float below 1 instead. See ``boundary_of``
    for its other forms.
    """
    with AnswersOf(LIBRARY, Answers(draws, forced_uniform, OWNER, "np.random")), numpy_replaced():
        yield
