"""Intercept Python's ``random``, and make ``float``, ``math`` and ``Fraction`` accept symbolic numbers.

    with random_answered_by(draws):
        token = random.choices(range(4), weights=weights)[0]

The functions of ``random`` and all its generators are intercepted, also generators made before the block. Only
``random()`` and ``_randbelow()`` are replaced; the library's own algorithms for the other functions call these two. A
function that was imported earlier by ``from random import random`` is replaced where it is stored. Subclasses with
their own ``random()`` run unchanged. The real generators are advanced and restored, so two generators with one state
give one stream (``streams``).
"""

from __future__ import annotations

import _random
import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from inspect import isbuiltin
from types import MethodType
from typing import Any

import numpy as np

from specverify.intercept.caller import caller, draw_line
from specverify.intercept.cpython import patches
from specverify.intercept.cpython.patches import once, replaced
from specverify.intercept.distributions import (
    FOLLOWED_AT_ONCE,
    Distribution,
    Forced,
    Parameters,
    bound,
    heads,
    one_by_one,
    one_of,
    seed_name,
    spelled,
)
from specverify.intercept.recorder import Recorder
from specverify.intercept.refusals import NeedsValue, give, is_left_to_library
from specverify.intercept.run import PROCESS, answering
from specverify.intercept.streams import AnsweredCall, Answers, AnswersOf
from specverify.intercept.symbolic.arrays import narrowed_elements
from specverify.intercept.symbolic.continuous import Continuous
from specverify.intercept.symbolic.large import check_numbers, check_outcomes, large
from specverify.intercept.symbolic.numbers import SymbolicFloat, SymbolicInt, of_operands, wrapped
from specverify.intercept.symbolic.primitives import OF_MATH, OF_PYTHON, OF_SCALARS
from specverify.intercept.symbolic.uniform import refusal
from specverify.reference import Draws, Site

# Random calls

LIBRARY = "random"
OWNER: Any = random.seed.__self__  # type: ignore[attr-defined]
MOST_BITS = 1023
"""Largest number of bits of an integer that converts to a float."""
MANY_BITS = 64
"""A request of at least this many bits from the operating system is a seed or a name and is passed through, like random
bytes. Replays detect whether tokens depend on it."""
REFUSED = ("gammavariate", "vonmisesvariate")
SETS_STATE = ("seed", "setstate", "getstate")
"""Methods that set or return the state of a stream; the stream then counts as freshly started."""
_CHOICES, _SYSTEM_BITS = random.Random.choices, random.SystemRandom.getrandbits
_SYSTEM_BYTES = random.SystemRandom.randbytes


def _asked(
    generator: Any, function: str, advance: Callable[[], Any], parameters: Any = "", *, in_pairs: bool = False
) -> tuple[AnsweredCall, Site]:
    answers = _answers()
    site: Site = (f"random.{function}{answers.name(generator, '')}", draw_line())
    return answers.open_call(generator, site, f"{function}{parameters}", advance, in_pairs=in_pairs), site


def _answers() -> Answers:
    answers: Answers | None = answering(LIBRARY)
    assert answers is not None
    return answers


def _uniform(generator: Any, function: str) -> Any:
    boundary = _answers().boundary
    if boundary is not None:
        return boundary.uniform(f"random.{function}")
    call, site = _asked(generator, function, partial(_random.Random.random, generator))
    return SymbolicFloat(Continuous(call.uniform(site)))


def _one_of(generator: Any, function: str, number: int) -> Any:
    boundary = _answers().boundary
    if number <= FOLLOWED_AT_ONCE:
        return one_of(*_asked(generator, function, partial(_drawn_below, generator, number)), number)
    if boundary is not None:
        return boundary.whole(f"random.{function}", 0, number)
    call, site = _asked(generator, function, partial(_drawn_below, generator, number))
    return SymbolicInt(call.whole(site, 0, number))


def _drawn_below(generator: Any, number: int) -> None:
    """Advance the generator as the library's ``_randbelow(number)`` does: draw bits until they are below ``number``."""
    while _random.Random.getrandbits(generator, number.bit_length()) >= number:
        pass


def _random_(self: Any) -> Any:
    return _uniform(self, _function("random"))


def _expovariate(self: Any, lambd: float = 1.0) -> Any:
    boundary = _answers().boundary
    if boundary is not None:
        return boundary.exponential("random.expovariate", -0.0) / lambd
    return -np.log(_uniform(self, "expovariate")) / lambd


def _weibullvariate(self: Any, alpha: float, beta: float) -> Any:
    return alpha * _expovariate(self) ** (1.0 / beta)


def _drawn_from(method: str, law: Distribution, parameters: Parameters) -> Callable[..., Any]:
    """Return the replacement of ``method`` of ``random.Random``, which draws from ``law``.

    ``parameters`` are the names and defaults of the parameters of the method.
    """
    real = getattr(random.Random, method)

    def answer(self: Any, *args: Any, **named: Any) -> Any:
        given, _ = bound(parameters, args, named)
        moved = () if law.standard is None else law.standard
        boundary = _answers().boundary
        if boundary is not None:
            noise: Any = boundary.uniform(f"random.{method}")
        else:
            drawn = tuple(moved or given)
            call, site = _asked(self, method, partial(real, self, *drawn), drawn, in_pairs=law.in_pairs)
            noise = Continuous(call.uniform(site))
        if "mode" in parameters:  # which stands last here, and is the middle one if it is not given
            low, high, mode = given
            given = [low, (low + high) / 2 if mode is None else mode, high]
        try:
            return wrapped(law.image(OF_SCALARS, noise, *given))
        except NeedsValue as refused:
            raise refused.during(f"random.{method}", caller()) from None

    return answer


def _randbelow(self: Any, n: int) -> Any:
    return _one_of(self, _function("_randbelow"), n)


def _getrandbits(self: Any, k: int) -> Any:
    if k >= MANY_BITS and isinstance(self, random.SystemRandom):
        return _SYSTEM_BITS(self, k)
    return _one_of(self, "getrandbits", 2 ** min(k, MOST_BITS))


def _randbytes(self: Any, n: int) -> bytes:
    if isinstance(self, random.SystemRandom):
        give(f"bytes of the operating system at {caller()}, given as they are")
        return _SYSTEM_BYTES(self, n)
    raise _not_finite("randbytes")


def _choices(self: Any, population: Any, weights: Any = None, *, cum_weights: Any = None, k: int = 1) -> list[Any]:
    check_numbers("random.choices", k)
    if weights is None and cum_weights is None:
        return [population[_one_of(self, "choices", len(population))] for _ in range(k)]
    if large(len(population)):
        bounds = np.cumsum(weights) if cum_weights is None else np.asarray(cum_weights)
        numbers = [_uniform(self, "choices") * bounds[-1] for _ in range(k)]
        return [population[min(int(np.searchsorted(bounds, number, "right")), len(bounds) - 1)] for number in numbers]
    result: list[Any] = _CHOICES(self, population, weights, cum_weights=cum_weights, k=k)
    return result


def _sample(self: Any, population: Sequence[Any], k: int, *, counts: Any = None) -> list[Any]:
    if counts is not None:
        check_outcomes("random.sample", sum(counts))
        population = [item for item, times in zip(population, counts, strict=True) for _ in range(times)]
    if not 0 <= k <= len(population):
        raise ValueError("Sample larger than population or is negative")
    check_outcomes("random.sample", len(population))
    asked = _asked(self, "sample", partial(_random.Random.getrandbits, self, 32))
    return [population[place] for place in one_by_one(*asked, np.ones(len(population)), k)]


def _binomialvariate(self: Any, n: int = 1, p: float = 0.5) -> int:
    return heads(*_asked(self, "binomialvariate", partial(_random.Random.random, self)), n, p)


def _not_finite(name: str) -> Exception:
    return refusal("no-law", f"random.{name} cannot be answered by finitely many outcomes")


def _refused(name: str) -> Callable[..., Any]:
    def refused(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise _not_finite(name)

    return refused


def _function(default: str) -> str:
    """Return the name of the function of ``random`` that the foreign code called, such as ``choices``.

    It is found in the call stack; ``default`` is returned if no function of ``random`` is there.
    """
    frame: Any = sys._getframe(2)  # noqa: SLF001
    name = default
    while frame is not None and frame.f_code.co_filename in {random.__file__, __file__}:
        if frame.f_code.co_filename == random.__file__:
            name = frame.f_code.co_name
        frame = frame.f_back
    return name


def _inside(name: str, answer: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    """Return the replacement of the method ``name`` of ``random``, whose original is ``real``.

    During interception it calls ``answer``, or ``real`` through the recorder if the run is recorded. Otherwise, and for
    draws that the standard library makes for itself, it calls ``real``.
    """

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        answers = answering(LIBRARY)
        if answers is None:
            return real(self, *args, **kwargs)
        if name in SETS_STATE or is_left_to_library():
            if name == "seed":
                answers.call_it(self, _seed_shown(*args, **kwargs))
            return answers.set_by_program(self, lambda: real(self, *args, **kwargs))
        if isinstance(answers, Recorder):
            return answers.call(LIBRARY, name, real, self, args, kwargs)
        return answer(self, *args, **kwargs)

    return method


def _seed_shown(a: Any = None, version: int = 2) -> str:
    return "" if a is None else f" seed({seed_name(a)})"


def _methods(kind: type[random.Random]) -> dict[str, Callable[..., Any]]:
    answers: dict[str, Callable[..., Any]] = {
        "random": _random_,
        "expovariate": _expovariate,
        "_randbelow": _randbelow,
        "getrandbits": _getrandbits,
        "randbytes": _randbytes,
        "choices": _choices,
        "sample": _sample,
        "binomialvariate": _binomialvariate,
        "weibullvariate": _weibullvariate,
        **{name: _drawn_from(name, *row) for name, row in spelled("python").items()},
        **{name: _refused(name) for name in (*REFUSED, *SETS_STATE)},
    }
    return {name: _inside(name, answer, getattr(kind, name)) for name, answer in answers.items() if hasattr(kind, name)}


METHODS = _methods(random.Random)
"""Name -> replacement of a method of ``random.Random`` inside a block."""
SYSTEM = {name: method for name, method in _methods(random.SystemRandom).items() if name in vars(random.SystemRandom)}
PROCESS.methods.update({random.SystemRandom: METHODS | SYSTEM, random.Random: METHODS})
MODULE = {name: MethodType(METHODS[name], OWNER) for name in METHODS if hasattr(random, name) and name[0] != "_"}


@once
@contextmanager
def random_replaced() -> Iterator[None]:
    """Patch the methods of ``random`` while the ``with`` block runs.

    As long as no interception is active, they call the originals.
    """
    with replaced(random.Random, METHODS), replaced(random.SystemRandom, SYSTEM), replaced(random, MODULE):
        yield


@contextmanager
def random_answered_by(draws: Draws, forced_uniform: Forced = None) -> Iterator[None]:
    """Let ``draws`` choose the results of the standard library's random calls while the ``with`` block runs.

    ``forced_uniform`` 0 or 1 gives every uniform the value 0 or the largest float below 1 instead. See ``boundary_of``
    for its other forms.
    """
    with AnswersOf(LIBRARY, Answers(draws, forced_uniform, OWNER, "")), random_replaced():
        yield


# Numbers


def _modf(value: SymbolicFloat) -> Any:
    whole = of_operands(OF_PYTHON["int"].name, value)
    return of_operands("subtract", value, whole), whole


_LOGARITHM = math.log
_OWN: dict[str, Callable[..., Any]] = {"modf": _modf}


def _of_math(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    row = OF_MATH.get(name)

    def function(*args: Any, **named: Any) -> Any:
        try:
            if not any(isinstance(arg, SymbolicFloat) for arg in args) or (row is None and name not in _OWN):
                return real(*args, **named)
            if row is None:
                return _OWN[name](*args)
            if len(args) == 2 and real is _LOGARITHM:
                return of_operands(row.name, args[0]) / real(args[1])
            return of_operands(row.name, *args)
        except NeedsValue as refused:
            raise refused.during(f"math.{name}", caller()) from None

    return function


_BY_METHODS = (math.floor, math.ceil, math.trunc, math.prod)
"""Functions that call methods of the numbers, which refuse by themselves."""
_MATH = {
    name: _of_math(name, function)
    for name, function in vars(math).items()
    if isbuiltin(function) and function not in _BY_METHODS
}
_BY_NAME = {getattr(math, name): function for name, function in _MATH.items()}


def _of_fraction(name: str, turned: str) -> Callable[..., Any]:
    """Return the comparison method ``name`` of ``Fraction`` that also accepts a symbolic number.

    ``turned`` is the name of the reversed comparison, which is called on the symbolic number.
    """
    real = getattr(Fraction, name)

    def relation(self: Fraction, other: Any) -> Any:
        return getattr(other, turned)(self) if isinstance(other, SymbolicFloat) else real(self, other)

    return relation


_TURNED = {"__lt__": "__gt__", "__le__": "__ge__", "__gt__": "__lt__", "__ge__": "__le__", "__eq__": "__eq__"}
_FRACTION = {name: _of_fraction(name, turned) for name, turned in _TURNED.items()}


def _as_float(*given: Any) -> Any:
    """Return ``float(*given)``, or the argument itself if it is a symbolic number."""
    result = given[0].item() if len(given) == 1 and type(given[0]).__module__.startswith(_OURS) else None
    return SymbolicFloat(result.unknown) if isinstance(result, SymbolicFloat) else float(*given)


def _as_numpy(kind: Any) -> Callable[..., Any]:
    """Return a conversion to the NumPy type ``kind`` that rounds a symbolic number and keeps it symbolic."""

    def made(*given: Any) -> Any:
        result = _as_float(*given) if len(given) == 1 and type(given[0]).__module__.startswith(_OURS) else None
        return narrowed_elements(result, np.dtype(kind))[()] if isinstance(result, SymbolicFloat) else kind(*given)

    return made


_OURS = "specverify.intercept."
_TYPES = {kind: _as_float if kind is float else _as_numpy(kind) for kind in patches.TYPES}


@once
@contextmanager
def math_answers() -> Iterator[None]:
    """Context manager: floating types, ``math`` and comparisons with ``Fraction`` accept symbolic numbers.

    Functions of ``math`` are replaced for all callers. Calls of floating types, and of functions imported from
    ``math``, are redirected in modules that ``patches.met`` noted.
    """
    with replaced(math, _MATH), replaced(Fraction, _FRACTION), patches.calls_led(_TYPES, _BY_NAME):
        yield
