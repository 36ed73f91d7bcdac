"""The distributions ("laws") that libraries draw from, and the extreme values of their generators.

**Extreme values.** If a generator returns one of the following values, code may emit a token of probability 0. Each
value is possible: either the generator was set to a state from which it returns the value
(``property_tests/intercept/test_distributions.py``), or its documentation states it. In the table, "inverse" is the
method that computes an exponential number as the logarithm of a uniform one:

    uniform        torch, NumPy, random    0 and 1 - 2**-bits; the significands have 53, 24, 11 (half) and 8 (bfloat16)
    exponential    NumPy Generator         0 and 44.4, by the inverse 36.7; RandomState and random: -0.0 and 36.7
                   torch                   documented to be above 0: the smallest and the largest in float64 are 2**-53
                                           and 36.7, cast to the dtype
    Gumbel         NumPy                   -3.6 and 36.7: it draws again where it would be infinite

**Laws.** The table has a row for each law that is a monotone function of one uniform or one exponential number, and for
each law of integers. A row names the methods of every library that draw from the law. The function is written in
operations of the table of primitives, so it applies to numbers, symbolic numbers and noise vectors. An intercepted call
advances the real generator by the real call, so that the state afterwards is as without interception.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from specverify.intercept.caller import caller
from specverify.intercept.cpython.patches import full
from specverify.intercept.refusals import NeedsValue
from specverify.intercept.symbolic.continuous import MOST_OUTCOMES
from specverify.intercept.symbolic.primitives import OF_SCALARS, Operations, result
from specverify.intercept.symbolic.uniform import refusal
from specverify.laws import rounding
from specverify.reference import Draws, Site

# Ends

ONE_BELOW_ONE = 1 - 2**-53
SMALLEST = 2.0**-53
"""The smallest positive uniform."""
LATEST = -math.log(SMALLEST)
"""The largest exponential that inversion of a uniform returns: 36.7."""
TAIL = 7.69711747013104972
"""Start of the tail of NumPy's ziggurat; its largest exponential is this plus ``LATEST``."""
MOST_CALLS = 200_000
"""Limit of consecutive single draws; a program that makes more is taken for a loop that waits for a different number.
"""
EQUAL_CALLS = 1024
"""Calls of a run in which every number, or every other number, has one value. Numbers of later calls are ordinary and
differ, so that a loop which waits for another number ends."""
GOLDEN = 0.6180339887498949
"""The golden ratio less one: its multiples modulo 1 are spread evenly."""
INSIDE = 2.0**-6
"""Distance from an end at which a forced value is "near" but ordinary; every floating dtype represents it."""


class MoreNumbers(Exception):  # noqa: N818 - reads as the sentence it is
    """Raised if the program draws more random numbers than there are given values."""


class Boundary:
    """Fixed values for the random numbers of a run: by default, each is the smallest or the largest of its generator.

    The end 0 stands for the smallest value of a generator, the end 1 for its largest. Runs at these ends show whether
    code emits a token of probability 0.
    """

    def __init__(
        self,
        end: float,
        only: int | None = None,
        values: Sequence[float] | None = None,
        apart: float = 0.0,
        most: int = MOST_CALLS,
    ) -> None:
        """Choose the values of the random numbers of one run.

        Args:
            end: 0 or 1: every number is the smallest or the largest value of its generator. A number in between: a
                uniform, from which every number is computed.
            only: Index, among all numbers of the run, of the only one that gets the value of ``end``; the others get a
                value near it.
            values: Uniforms from which the numbers are computed in order, in place of ``end``.
            apart: If above 0, numbers are near ``end`` but not at it: a generator returns a number nearer to the end
                with this probability.
            most: The most calls that draw numbers without ``values``; a further one is refused.
        """
        self._values, self._most = values, most
        self.has_values = values is not None
        """Whether every number has a value of its own, as in a run without symbolic numbers."""
        self._end, self._only, self._apart = end, only, apart
        self.coarsest = 0.0
        """Over the numbers that got the value of the end, the largest probability that such a number has exactly it."""
        self.closer = 0.0
        """Upper bound on the probability that any of these numbers is closer to the end than the value it was given.

        With ``only``, all numbers drawn in one call with that number count, because each of them may be the one.
        """
        self.together = 1
        """How many numbers the call drew that drew the number with index ``only``."""
        self.calls = 0
        """How often ``number`` was called; a call for several equal numbers counts once."""
        self.drawn = 0
        """How many numbers were drawn."""
        self.arrays: list[tuple[int, int]] = []
        """For each call that drew several numbers: the index of the first, and how many."""
        self.where, self.value = "", end
        """Call and line that drew the number with index ``only``, and the value that it got."""

    def number(
        self, call: str, smallest: float, largest: float, between: Callable[[float], float], least: float
    ) -> float:
        """Return the next number of a generator, with the value that this run chooses for it.

        ``call`` names the drawing call. ``smallest`` and ``largest`` are the extreme values of the generator, and
        ``between(u)`` is its number for a uniform u. ``least`` is an upper bound on the probability of an extreme
        value.
        """
        if self._values is not None:
            return between(self._next())
        self.calls += 1
        if self.calls > self._most:
            raise NeedsValue(
                "endless-at-an-end",
                f"{call} at {caller()} is called again and again: none of {self._most} numbers ends the loop",
            )
        here, end = self._only in (None, self.drawn), self._end
        self.drawn += 1
        if self.calls > EQUAL_CALLS:
            here, end = False, self.calls * GOLDEN % 1
        elif not here and end in (0, 1):
            end = abs(end - INSIDE)
        value = smallest if end == 0 else largest if end == 1 else between(end)
        if here and end in (0, 1):
            distance = max(self._apart, least)
            self.coarsest, self.closer = max(self.coarsest, least), self.closer + distance
            if self._apart:
                value = between(min(distance, 1 - least) if end == 0 else max(1 - least - distance, 0.0))
        if here and self._only is not None:
            self.where, self.value = f"{call} at {caller()}", value
        return value

    def several(self, count: int, number: Callable[[], float]) -> list[float]:
        """Return ``count`` numbers of one call, each computed by ``number()``.

        All of them are equal, except the number that ``only`` selects: if it is drawn in this call, it has the extreme
        value. If the run has a list of values, ``number()`` is called once for each number, so that they may differ.
        """
        if self._values is not None:
            return [number() for _ in range(count)]
        first = self.drawn
        self.arrays.append((first, count))
        self.drawn = first + 1 if first == self._only else first
        before = self.closer
        result = [number()] * count if count else []
        if self._only is not None and first <= self._only < first + count:
            self.drawn, self.together = self._only, count
            result[self._only - first] = number()
        self.closer = before + count * (self.closer - before)
        self.drawn = first + count
        return result

    def _next(self) -> float:
        """Return the next of the ``values`` of the run. Raises ``MoreNumbers`` if there is none."""
        values = self._values or ()
        if self.drawn >= len(values):
            raise MoreNumbers(f"{self.drawn + 1} random numbers are drawn, and {len(values)} were before")
        self.drawn += 1
        return values[self.drawn - 1]

    def uniform(self, call: str, largest: float = ONE_BELOW_ONE) -> float:
        """Return the next uniform number, drawn by ``call``; ``largest`` is the largest value of the generator."""
        return self.number(call, 0.0, largest, float, 1 - largest)

    def whole(self, call: str, low: int, number: int) -> int:
        """Return the next integer in ``[low, low + number)``, drawn by ``call``: an extreme or a given value."""
        return low + int(self.number(call, 0, number - 1, lambda u: math.floor(u * number), 1 / number))

    def exponential(self, call: str, smallest: float = 0.0, largest: float = LATEST, least: float = SMALLEST) -> float:
        """Return the next exponential number of rate 1, drawn by ``call``.

        ``smallest`` and ``largest`` are the extreme values of the generator, and ``least`` is an upper bound on the
        probability of an extreme value.
        """
        known = self._values is not None  # what is known is known of u, where the exponential is -log u
        return self.number(call, smallest, largest, lambda u: -math.log(u) if known else -math.log1p(-u), least)

    def gumbel(self, call: str) -> float:
        """Return the next number of NumPy's standard Gumbel law, drawn by ``call``."""
        return self.number(call, -math.log(LATEST), LATEST, lambda u: -math.log(-math.log(u)), SMALLEST)


class NearEnd(NamedTuple):
    """The rule that every random number is near the same ``end`` of its range, 0 or 1, but not at the end itself.

    How near is given as a probability: a generator returns a value closer to the end with probability ``apart``. The
    ``Boundary`` of each run, which supplies its numbers, is appended to ``boundaries``.
    """

    end: float
    apart: float
    boundaries: list[Boundary]

    def __float__(self) -> float:
        """Return the end, 0 or 1, so that code may treat this object as the number ``end``."""
        return self.end


Forced = float | NearEnd | Boundary | None
"""The value of every uniform (1 stands for the largest uniform), a rule that returns the values, or None for no
forcing."""


def boundary_of(forced: Forced) -> Boundary | None:
    """Return the ``Boundary`` that fixes the random numbers of one run; None if ``forced`` is None (not fixed).

    ``forced`` may be a ``Boundary``, which is returned itself, a ``NearEnd``, or a number, the ``end`` of a new
    ``Boundary``.
    """
    if isinstance(forced, NearEnd):
        forced.boundaries.append(Boundary(forced.end, apart=forced.apart))
        return forced.boundaries[-1]
    return Boundary(forced) if isinstance(forced, int | float) else forced


# Laws
REQUIRED = object()
"""Marks a parameter without a default value."""
Parameters: TypeAlias = Mapping[str, Any]
"""Parameter names of a library function, in order -> defaults."""


class Distribution(NamedTuple):
    """A law that is a monotone function of one uniform or exponential number.

    ``numpy``, ``torch`` and ``python`` have the methods of each library that draw from the law: they map the name of a
    method to its parameters (names and defaults).
    """

    image: Callable[..., Any]
    """``image(x, noise, *parameters)``: the number as a function of the noise, in the operations ``x`` of the table."""
    exponential: bool = False
    """Whether the noise is exponential with rate 1; otherwise it is uniform."""
    standard: tuple[float, ...] | None = None
    """Parameters of the standard form that libraries draw before shifting and scaling; None if they do not."""
    whole: bool = False
    """Whether the values are integers."""
    in_pairs: bool = False
    """Whether legacy generators make two values at once and keep one for the next call."""
    numpy: Mapping[str, Parameters] = {}
    torch: Mapping[str, Parameters] = {}
    """Tensor method -> its parameters."""
    python: Mapping[str, Parameters] = {}
    """Method of ``random`` -> its parameters."""


MOST_WHOLE = 2.0**62
"""Largest integer that is returned for a boundary value."""


def _logit(x: Operations, u: Any) -> Any:
    """Return ``log(u / (1 - u))``, which increases with u; ``x`` has the arithmetic for the type of ``u``."""
    odds = x.subtract(x.reciprocal(x.maximum(u, SMALLEST)), 1.0)
    return x.negative(x.log(odds))


def _moved(x: Operations, noise: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    if np.ndim(scale) == 0 and scale == 0:
        return loc
    return x.add(x.multiply(noise, scale), loc)


def _of_logistic(law: str) -> Callable[..., Any]:
    """Return the function ``image(x, u, loc, scale)`` that computes a number of the law ``law`` from the uniform ``u``.

    It computes the logistic number of ``u``, maps it to the standard law by the method ``{law}_of_logistic`` of ``x``,
    multiplies by ``scale`` and adds ``loc``. ``x`` has the arithmetic for the type of ``u``: numbers, symbolic numbers
    or noise vectors.
    """

    def image(x: Operations, u: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        return _moved(x, getattr(x, f"{law}_of_logistic")(_logit(x, u)), loc, scale)

    return image


_normal = _of_logistic("normal")


def _beta(x: Operations, u: Any, a: Any, b: Any) -> Any:
    """Return the beta number with parameters a and b at ``u``, by the inverse of its CDF; a or b must be 1.

    It is a power of ``u``, or 1 minus a power of 1 - u. ``x`` has the arithmetic for the type of ``u``. Raises
    ``NeedsValue`` for other parameters.
    """
    if 1 not in (a, b):
        raise refusal("parameters", "a beta law is answered where one of its parameters is 1 and both are numbers")
    return x.power(u, 1 / a) if b == 1 else x.subtract(1.0, x.power(u, 1 / b))


def _trials(x: Operations, drawn: Any, chance: Any) -> Any:
    with np.errstate(divide="ignore"):
        waits = x.divide(drawn, -np.log1p(-chance))
    return x.add(x.floor(waits), 1.0)


def _triangular(x: Operations, u: Any, left: Any, mode: Any, right: Any) -> Any:
    """Return the triangular number on [left, right] with mode ``mode`` at ``u``, by the inverse of its CDF.

    ``x`` has the arithmetic for the type of ``u``. Raises ``NeedsValue`` for a noise vector, and unless ``left <= mode
    <= right`` and ``left < right``.
    """
    if x is not OF_SCALARS or not left <= mode <= right or left == right:
        raise refusal("parameters", "a triangular law is answered one by one, and where left <= mode <= right")
    width = right - left
    if result("less", u, (mode - left) / width):
        return _moved(x, x.sqrt(u), left, math.sqrt(width * (mode - left)))
    return _moved(x, x.sqrt(x.subtract(1.0, u)), right, -math.sqrt(width * (right - mode)))


_LOC: Parameters = {"loc": 0.0, "scale": 1.0}
DISTRIBUTIONS: dict[str, Distribution] = {
    "logistic": Distribution(
        lambda x, u, loc, scale: _moved(x, _logit(x, u), loc, scale),
        standard=(0.0, 1.0),
        numpy={"logistic": _LOC},
    ),
    "laplace": Distribution(_of_logistic("laplace"), standard=(0.0, 1.0), numpy={"laplace": _LOC}),
    "cauchy": Distribution(
        _of_logistic("cauchy"),
        standard=(),
        in_pairs=True,
        numpy={"standard_cauchy": {}},
        torch={"cauchy_": {"median": 0.0, "sigma": 1.0}},
    ),
    "normal": Distribution(
        _normal,
        standard=(0.0, 1.0),
        in_pairs=True,
        numpy={"normal": _LOC, "standard_normal": {}, "randn": {}},
        torch={"normal_": {"mean": 0.0, "std": 1.0}},
        python={"gauss": {"mu": 0.0, "sigma": 1.0}, "normalvariate": {"mu": 0.0, "sigma": 1.0}},
    ),
    "lognormal": Distribution(
        lambda x, u, mean, sigma: x.exp(_normal(x, u, mean, sigma)),
        standard=(0.0, 1.0),
        in_pairs=True,
        numpy={"lognormal": {"mean": 0.0, "sigma": 1.0}},
        torch={"log_normal_": {"mean": 1.0, "std": 2.0}},
        python={"lognormvariate": {"mu": 0.0, "sigma": 1.0}},
    ),
    "beta": Distribution(
        _beta,
        numpy={"beta": {"a": REQUIRED, "b": REQUIRED}},
        python={"betavariate": {"alpha": REQUIRED, "beta": REQUIRED}},
    ),
    "triangular": Distribution(
        _triangular,
        numpy={"triangular": {"left": REQUIRED, "mode": REQUIRED, "right": REQUIRED}},
        python={"triangular": {"low": 0.0, "high": 1.0, "mode": None}},
    ),
    "geometric": Distribution(
        _trials,
        exponential=True,
        whole=True,
        numpy={"geometric": {"p": REQUIRED}},
        torch={"geometric_": {"p": REQUIRED}},
    ),
    "pareto": Distribution(
        lambda x, drawn, a: x.expm1(x.divide(drawn, a)),
        exponential=True,
        numpy={"pareto": {"a": REQUIRED}},
    ),
    "power": Distribution(
        lambda x, drawn, a: x.exp(x.divide(x.negative(drawn), a)),
        exponential=True,
        numpy={"power": {"a": REQUIRED}},
    ),
    "rayleigh": Distribution(
        lambda x, drawn, scale: x.multiply(x.sqrt(x.multiply(drawn, 2.0)), scale),
        exponential=True,
        numpy={"rayleigh": {"scale": 1.0}},
    ),
    "weibull": Distribution(
        lambda x, drawn, a: x.power(drawn, 1 / a), exponential=True, numpy={"weibull": {"a": REQUIRED}}
    ),
}
"""Name -> law. Parameter names and defaults are those of each library."""


def spelled(library: str) -> dict[str, tuple[Distribution, Parameters]]:
    """Return the methods of ``library`` that draw from a law of the table: name -> (law, parameters of the method)."""
    return {
        method: (law, parameters)
        for law in DISTRIBUTIONS.values()
        for method, parameters in getattr(law, library).items()
    }


def bound(parameters: Parameters, args: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[list[Any], tuple[Any, ...]]:
    """Return the values of ``parameters`` in a call with ``args`` and ``named``, and the further positional arguments.

    The values are in the order of ``parameters``, defaults included. Raises ``TypeError`` if an argument is missing or
    unknown.
    """
    given = dict(parameters) | dict(zip(parameters, args, strict=False)) | dict(named)
    if given.keys() != parameters.keys() or REQUIRED in given.values():
        raise TypeError(f"expected {', '.join(parameters) or 'no parameters'}, got {', '.join(given)}")
    return list(given.values()), args[len(parameters) :]


def _until_nothing(term: float, ratio: Callable[[int], float]) -> Any:
    """Return a pmf on 0, 1, 2, ... whose entry 0 is ``term`` and whose entry k is ``ratio(k)`` times entry k - 1.

    It is truncated where the probabilities become negligible in float64, and normalised.
    """
    masses = [term]
    while masses[-1] > _NOTHING or ratio(len(masses)) >= 1:
        masses.append(masses[-1] * ratio(len(masses)))
        if len(masses) > MOST_OUTCOMES:
            raise refusal("too-many-outcomes", "a whole number has more outcomes than can be enumerated")
    return np.array(masses) / math.fsum(masses)


_NOTHING = 2.0**-56
_MOST_EXPECTED = 500.0


def _poisson(lam: float) -> Any:
    if not 0 <= lam <= _MOST_EXPECTED:
        raise refusal("parameters", f"a Poisson law is answered up to an expectation of {_MOST_EXPECTED:g}")
    return _until_nothing(math.exp(-lam), lambda k: lam / k)


def _failures(successes: float, chance: float) -> Any:
    if not (successes > 0 and 0 < chance <= 1 and chance**successes > 0):
        raise refusal("parameters", "a number of failures is answered for n > 0 and 0 < p <= 1")
    return _until_nothing(chance**successes, lambda k: (successes + k - 1) / k * (1 - chance))


def _logarithmic(chance: float) -> Any:
    if not 0 < chance < 1:
        raise refusal("parameters", "a logarithmic law is answered for 0 < p < 1")
    return _until_nothing(-chance / math.log1p(-chance), lambda k: chance * k / (k + 1))


class FiniteLaw(NamedTuple):
    """A law of integers.

    ``numpy`` maps the names of the NumPy methods that draw from the law to their parameters; ``torch`` has the names of
    the torch functions. ``pmf(*parameters)`` returns the probabilities of ``first``, ``first + 1``, ..., truncated
    where they are negligible.
    """

    pmf: Callable[..., Any]
    first: int = 0
    numpy: Mapping[str, Parameters] = {}
    torch: tuple[str, ...] = ()


FINITE: dict[str, FiniteLaw] = {
    "poisson": FiniteLaw(_poisson, numpy={"poisson": {"lam": 1.0}}, torch=("poisson",)),
    "negative_binomial": FiniteLaw(_failures, numpy={"negative_binomial": {"n": REQUIRED, "p": REQUIRED}}),
    "logseries": FiniteLaw(_logarithmic, 1, numpy={"logseries": {"p": REQUIRED}}),
}
"""Name -> distribution on integers."""


# Finite draws

FOLLOWED_AT_ONCE = 64
"""A draw with more outcomes than this stays symbolic until its value is forced; a comparison has only two results."""
FOLLOWED_IN_ARRAYS = 1_000
"""The same limit for all draws of an array: an array with symbolic elements cannot be an array of indices."""
MOST_TRIALS = 100
MOST_SHUFFLED = 8


def seed_name(seed: Any) -> str:
    """Return a name of ``seed`` for messages, the same in every run although the seed may be random; "" for None.

    A small integer is its own name. Other integers are named "a large number", a list or tuple by its items, any other
    seed by its type.
    """
    if seed is None:
        return ""
    if type(seed) in {list, tuple}:
        return f"[{', '.join(map(seed_name, seed))}]"
    if not isinstance(seed, int | np.integer):
        return type(seed).__name__
    return (
        str(int(seed)) if type(seed).__name__ != "SymbolicInt" and abs(int(seed)) < MOST_OUTCOMES else "a large number"
    )


def one_by_one(draws: Draws, site: Site, weights: Any, count: int) -> list[int]:
    """Draw ``count`` different indices one after the other, and return them in this order.

    Each is drawn by ``draws``, in proportion to the ``weights`` of the indices that are left. ``site`` names the call
    in the record of draws.
    """
    left = np.array(weights, dtype=np.float64)
    result: list[int] = []
    for position in range(count):
        result.append(draws.categorical(left / left.sum(), (*site, position)))
        left[result[-1]] = 0.0
    return result


def one_of(draws: Draws, site: Site, number: int) -> int:
    """Return one of ``number`` equally likely outcomes, drawn by ``draws``; ``site`` names the decision.

    Raises ``NeedsValue`` for more than ``MOST_OUTCOMES`` outcomes.
    """
    if number > MOST_OUTCOMES:
        raise refusal("too-many-outcomes", f"{site[0]} has {number} outcomes, more than can be enumerated")
    return draws.categorical(full(number, 1.0 / number), site)


def masses(p: Any, number: int) -> Any:
    """Return ``p``, the argument of NumPy's ``choice`` over ``number`` outcomes, as an array of probabilities.

    ``p`` None stands for equal probabilities. Raises the error that NumPy raises for invalid probabilities.
    """
    if number <= 0:
        raise ValueError("a must be a positive integer or not empty")
    if p is None:
        return full(number, 1.0 / number)
    rounding.saw(getattr(p, "dtype", None))
    pmf = p if type(p) is np.ndarray and p.dtype.char == "d" else np.asarray(p, dtype=np.float64)
    if pmf.shape != (number,):
        raise ValueError("'a' and 'p' must have same size")
    total = pmf.sum()
    if min(pmf.tolist()) < 0 or math.isnan(total):
        raise ValueError("probabilities are not non-negative or contain NaN")
    if abs(total - 1) > _tolerance(getattr(p, "dtype", None)):
        raise ValueError("probabilities do not sum to 1")
    return pmf / total


@cache
def _tolerance(dtype: Any) -> float:
    """Return how far the sum of probabilities of this dtype may be from 1 in NumPy's ``choice``."""
    coarse = dtype is not None and np.issubdtype(dtype, np.floating)
    return math.sqrt(np.finfo(dtype if coarse else np.float64).eps)


def heads(draws: Draws, site: Site, trials: int, chance: float) -> int:
    """Return the number of successes in ``trials`` trials of probability ``chance``, drawn by ``draws``.

    ``site`` names the decision. Raises ``NeedsValue`` for more than ``MOST_TRIALS`` trials.
    """
    if not 0 <= trials <= MOST_TRIALS:
        raise refusal("too-many-outcomes", f"{site[0]} of {trials} trials cannot be enumerated")
    return draws.categorical(binomial_pmf(trials, chance), site)


def binomial_pmf(trials: int, chance: float) -> Any:
    """Return the binomial pmf, an array of length ``trials + 1``, for success probability ``chance``."""
    return np.array([math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(trials + 1)])


def drawn_out(draws: Draws, site: Site, good: int, bad: int, taken: int) -> int:
    """Return a hypergeometric number, drawn by ``draws``: how many of ``taken`` items are good.

    The items are drawn without replacement from ``good`` good items and ``bad`` other items. ``site`` names the
    decision. Raises ``NeedsValue`` if ``taken`` exceeds ``MOST_TRIALS``.
    """
    if min(good, bad, taken) < 0 or taken > good + bad:
        raise ValueError("ngood, nbad and nsample must not be negative, and nsample not be more than both together")
    if taken > MOST_TRIALS:
        raise refusal("too-many-outcomes", f"{site[0]} of {taken} samples cannot be enumerated")
    ways = [math.comb(good, k) * math.comb(bad, taken - k) for k in range(taken + 1)]
    return draws.categorical(np.array([way / math.comb(good + bad, taken) for way in ways]), site)


def counts(draws: Draws, site: Site, trials: int, pmf: Any) -> list[int]:
    """Return multinomial counts: how often each outcome of ``pmf`` occurs in ``trials`` draws.

    ``draws`` draws the count of each outcome from its binomial law given the counts of the earlier outcomes. ``site``
    names the decision.
    """
    if trials == 1:
        only = draws.categorical(pmf, site)
        return [int(outcome == only) for outcome in range(len(pmf))]
    result: list[int] = []
    for outcome, mass in enumerate(pmf):
        rest = pmf[outcome:].sum()
        chance = 1.0 if outcome == len(pmf) - 1 else min(1.0, mass / rest) if rest > 0 else 0.0
        result.append(heads(draws, (*site, outcome), trials - sum(result), chance))
    return result


def filled(size: Any, draw: Callable[[tuple[int, ...]], Any], dtype: Any = np.int64) -> Any:
    """Return an array of shape ``size`` and type ``dtype`` with ``draw(index)`` at each index.

    The result is a scalar if ``size`` is None or ().
    """
    if size is None or size == ():
        return dtype(draw(()))
    result = np.empty(size, dtype=dtype)
    for index in np.ndindex(*result.shape):
        result[index] = draw(index)
    return result


MOST_PERMUTED = 10_000_000
"""A permutation of more elements is refused before the library draws it."""


def check_shuffled(call: Any, number: int) -> None:
    """Raise ``NeedsValue`` if ``number``, the number of elements to permute, exceeds ``MOST_SHUFFLED``.

    ``call`` is the name of the permuting call for the message.
    """
    if number > MOST_SHUFFLED:
        raise refusal("too-many-outcomes", f"{call} of {number} has more outcomes than can be enumerated")


def shuffled(draws: Draws, site: Site, number: int) -> list[int]:
    """Return a permutation of ``number`` elements, drawn by ``draws``; ``site`` names the decision.

    Raises ``NeedsValue`` for more than ``MOST_SHUFFLED`` elements.
    """
    check_shuffled(site[0], number)
    return one_by_one(draws, site, np.ones(number), number)
