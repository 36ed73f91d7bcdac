"""Convert the record of a plain run to uniform numbers and outcomes (index and weights).

A plain run is one in which the libraries draw their own numbers. There is one rule for each library call, by its name.
The rules are written from the documentation of the libraries. They share no code with the rules by which interception
produces the results of the same calls, so that one can test the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from specverify.intercept.recorder import Record

BITS = {"float16": 11, "bfloat16": 8}
"""Dtype -> bits of its uniforms, for dtypes so coarse that this changes the law."""


class NotRecorded(Exception):  # noqa: N818 - reads as the sentence it is
    """Raised for a call whose random numbers cannot be computed from its result."""


class Item(NamedTuple):
    """One uniform number or one outcome that a recorded call drew.

    ``low`` and ``high`` bound the uniform number, ``outcome`` is the index of the outcome. A drawn integer has both.
    """

    low: float = math.nan
    """Lower bound (inclusive) of the uniform; NaN for an outcome."""
    high: float = math.nan
    """Upper bound (exclusive) of the uniform; equal to ``low`` if the uniform is known exactly, NaN for an outcome."""
    outcome: int | None = None
    weights: Any = None
    """Documented weights of all outcomes, unnormalised; None if the library does not document them."""


def items_of(record: Record) -> list[Item]:
    """Return the uniform numbers and outcomes that the call of ``record`` drew, in order.

    Raises ``NotRecorded`` for a call without a rule.
    """
    row = ROWS.get((record.library, record.name))
    if row is None:
        raise NotRecorded(f"{record} is not recorded")
    named = {name: item for name, item in record.kwargs.items() if name not in BESIDE}
    try:
        return list(row(record.result, *record.args, **named))
    except Exception as error:
        raise NotRecorded(f"{record} is not read: {type(error).__name__}: {error}") from error


BESIDE = frozenset({"size", "dtype", "out", "generator", "device", "layout", "pin_memory", "memory_format", "method"})
"""Arguments that do not change the law of a number."""


def _flat(numbers: Any) -> Any:
    return np.asarray(numbers, dtype=np.float64).ravel()


def _points(numbers: Any) -> Iterator[Item]:
    """Yield an item for each of ``numbers``, uniform numbers whose values are known exactly.

    If the result of a call does not depend on its number (an exponential with the scale inf), the number is not known,
    and any will do: here one half.
    """
    flat = np.nan_to_num(_flat(numbers), nan=0.5).tolist()
    yield from map(Item, flat, flat)


def _cells(low: Any, high: Any) -> Iterator[Item]:
    for one, other in zip(_flat(low).tolist(), _flat(high).tolist(), strict=True):
        yield Item(one, other)


def _whole(numbers: Any, low: int, number: int) -> Iterator[Item]:
    """Yield an item for each integer in ``numbers``; each was drawn uniformly from ``range(low, low + number)``.

    The item of the integer ``low + i`` has the outcome i. Its bounds are ``i / number`` and ``(i + 1) / number``,
    because ``floor(u * number)`` is i for a uniform u between them.
    """
    weights = np.ones(number) if number <= _TOLD else None
    for value in np.asarray(numbers, dtype=object).ravel().tolist():
        place = int(value) - low
        yield Item(place / number, (place + 1) / number, place, weights)


_TOLD = 10_000


def _outcomes(places: Any, weights: Any = None) -> Iterator[Item]:
    """Yield an item for each outcome in ``places``, the outcomes of successive draws of one call.

    ``weights`` are the weights of the first draw. The weights of later draws depend on earlier outcomes and are not
    stored.
    """
    for number, place in enumerate(np.asarray(places).ravel().tolist()):
        yield Item(outcome=int(place), weights=weights if not number else None)


def _of_exponential(of: Callable[..., Any]) -> Callable[..., Iterator[Item]]:
    """Return the rule of a library call that computes its result from exponential numbers of rate 1.

    ``of(result, *parameters)`` is the inverse computation: it returns the exponential numbers from which the call with
    these parameters computed ``result``. The rule has the same parameters and yields an item for each number.
    """

    def row(result: Any, *parameters: Any, **named: Any) -> Iterator[Item]:
        with np.errstate(all="ignore"):
            yield from _points(np.exp(-_flat(of(np.asarray(result, dtype=np.float64), *parameters, **named))))

    return row


def _uniform(result: Any, low: Any = 0.0, high: Any = 1.0, *_: Any) -> Iterator[Item]:
    yield from _points((np.asarray(result) - low) / (np.asarray(high) - low))


def _scaled(result: Any, scale: Any = 1.0, *_: Any) -> Any:
    return result / scale


def _gumbel(result: Any, loc: Any = 0.0, scale: Any = 1.0, *_: Any) -> Iterator[Item]:
    yield from _points(np.exp(-np.exp(-(np.asarray(result) - loc) / scale)))


def _logistic(result: Any, loc: Any = 0.0, scale: Any = 1.0, *_: Any) -> Iterator[Item]:
    yield from _points(1 / (1 + np.exp(-(np.asarray(result) - loc) / scale)))


_half_erfc = np.vectorize(lambda x: math.erfc(x) / 2, otypes=[float])


def _normal(result: Any, loc: Any = 0.0, scale: Any = 1.0, *_: Any) -> Iterator[Item]:
    yield from _points(_half_erfc((np.asarray(loc) - np.asarray(result)) / (np.asarray(scale) * math.sqrt(2))))


def _standard_normal(result: Any, *_: Any) -> Iterator[Item]:
    yield from _normal(result)


def _lognormal(result: Any, mean: Any = 0.0, sigma: Any = 1.0, *_: Any) -> Iterator[Item]:
    yield from _normal(np.log(result), mean, sigma)


def _laplace(result: Any, loc: Any = 0.0, scale: Any = 1.0, *_: Any) -> Iterator[Item]:
    x = (np.asarray(result) - loc) / scale
    yield from _points(np.where(x < 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2))


def _cauchy(result: Any, median: Any = 0.0, sigma: Any = 1.0) -> Iterator[Item]:
    x = (np.asarray(result, dtype=np.float64) - median) / sigma
    yield from _points(np.where(x < 0, np.arctan2(1.0, -x), np.pi - np.arctan2(1.0, x)) / np.pi)


def _triangular(result: Any, left: float, mode: float, right: float, *_: Any) -> Iterator[Item]:
    x = np.asarray(result, dtype=np.float64)
    with np.errstate(all="ignore"):
        rising = (x - left) ** 2 / ((right - left) * (mode - left))
        falling = 1 - (right - x) ** 2 / ((right - left) * (right - mode))
    yield from _points(np.where(x < mode, rising, falling))


def _triangular_of_python(result: float, low: float = 0.0, high: float = 1.0, mode: Any = None) -> Iterator[Item]:
    yield from _triangular(result, low, (low + high) / 2 if mode is None else mode, high)


def _count_from(first: int) -> Callable[..., Iterator[Item]]:
    def row(result: Any, *_: Any, **__: Any) -> Iterator[Item]:
        yield from _outcomes(np.asarray(result) - first)

    return row


def _beta(result: Any, a: float, b: float, *_: Any) -> Iterator[Item]:
    yield from _points(np.asarray(result) ** a if b == 1 else (1 - np.asarray(result)) ** b)


def _trials(result: Any, p: Any, *_: Any) -> Iterator[Item]:
    """Yield an item for each geometric number in ``result``: the interval of the uniform that gives the number.

    ``p`` is the probability of success. A smaller number of trials comes from a larger uniform.
    """
    trials = np.asarray(result, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):  # a certain success, p = 1, has 1 trial
        failure = np.log1p(-np.asarray(p, dtype=np.float64))
        yield from _cells(np.exp(trials * failure), np.where(trials > 1, np.exp((trials - 1) * failure), 1.0))


def _integers(result: Any, low: Any, high: Any = None, *rest: Any, endpoint: bool = False, **_: Any) -> Iterator[Item]:
    endpoint = endpoint or (len(rest) > 2 and bool(rest[2]))
    begin, end = (0, low) if high is None else (low, high)
    yield from _whole(result, int(begin), int(end) + endpoint - int(begin))


POOL = 16
"""In a population of more entries than this, equal entries are merged into one outcome."""


def _choice(
    places: Any, a: Any, size: Any = None, replace: bool = True, p: Any = None, *_: Any, **__: Any
) -> Iterator[Item]:
    number = int(a) if np.ndim(a) == 0 else len(a)
    weights: Any = np.asarray(p, dtype=np.float64) if p is not None else np.ones(number)
    if replace and np.ndim(a) == 1 and number > POOL and np.asarray(a).dtype != object:
        which: Any = np.unique(a, return_inverse=True)[1]
        places, weights = which[places], np.bincount(which, weights)
    for place in np.asarray(places).ravel().tolist():
        yield Item(outcome=place, weights=weights)
        if not replace:
            weights = np.where(np.arange(number) == place, 0.0, weights)


def _counts(result: Any, n: int, pvals: Any, *_: Any) -> Iterator[Item]:
    weights = np.asarray(pvals) if n == 1 and np.ndim(pvals) == 1 else None
    for row in np.asarray(result).reshape(-1, np.asarray(result).shape[-1]):
        yield from _outcomes([int(row.argmax())] if n == 1 else row, weights)


def _heads(result: Any, trials: Any, chance: Any, *_: Any) -> Iterator[Item]:
    """Yield an item for each binomial number in ``result``: the number as an outcome.

    The weights of an item are the binomial pmf, or None for more than ``_TOLD_TRIALS`` trials. ``trials`` is the number
    of trials, and ``chance`` the probability of success.
    """
    for place, n, p in np.broadcast(np.asarray(result), np.asarray(trials), np.asarray(chance)):
        ways = range(int(n) + 1) if n <= _TOLD_TRIALS else ()
        weights = np.array([math.comb(int(n), k) * p**k * (1 - p) ** (int(n) - k) for k in ways]) if ways else None
        yield Item(outcome=int(place), weights=weights)


_TOLD_TRIALS = 100


def _bits(result: int, k: int) -> Iterator[Item]:
    yield from _whole(result, 0, 2**k)


def _places(result: Any, *_: Any, **__: Any) -> Iterator[Item]:
    yield from _outcomes(result)


def _weibull_of_python(result: float, alpha: float, beta: float) -> Any:
    return (result / alpha) ** beta


# torch


def _dtype(result: Any) -> str:
    return str(result.dtype).removeprefix("torch.")


def _torch_uniform(result: Any, low: float = 0.0, high: float = 1.0) -> Iterator[Item]:
    bits, numbers = BITS.get(_dtype(result)), (result.double().cpu().numpy() - low) / (high - low)
    yield from _points(numbers) if bits is None else _cells(numbers, numbers + 2.0**-bits)


def _torch_filled(result: Any, _: Any, low: float = 0.0, high: float = 1.0) -> Iterator[Item]:
    yield from _torch_uniform(result, low, high)


def _torch_rand(result: Any, *_: Any) -> Iterator[Item]:
    yield from _torch_uniform(result)


def _torch_exponential(result: Any, _: Any, rate: float = 1.0) -> Iterator[Item]:
    yield from _points(np.exp(-result.double().cpu().numpy() * rate))


def _doubles(given: Any) -> Any:
    return given.double().cpu().numpy() if hasattr(given, "cpu") else given


def _torch_standard_normal(result: Any, *_: Any) -> Iterator[Item]:
    yield from _normal(_doubles(result))


def _torch_normal(result: Any, mean: Any = 0.0, std: Any = 1.0, *_: Any) -> Iterator[Item]:
    yield from _normal(_doubles(result), _doubles(mean), _doubles(std))


def _torch_in_place(row: Callable[..., Iterator[Item]]) -> Callable[..., Iterator[Item]]:
    """Return the rule for a torch method that fills a tensor in place, made from ``row``, the rule for a NumPy call.

    A rule maps the recorded result and arguments of a call to an iterator of uniform numbers and outcomes. The returned
    rule ignores the filled tensor among the arguments, and converts the result to an array of doubles for ``row``.
    """
    return lambda result, _, *parameters: row(_doubles(result), *parameters)


def _torch_geometric(result: Any, _: Any, p: float) -> Iterator[Item]:
    yield from _trials(result.double().cpu().numpy(), p)


def _torch_multinomial(result: Any, weights: Any, number: int, replacement: bool = False, *_: Any) -> Iterator[Item]:
    rows = weights.double().cpu().numpy().reshape(-1, weights.shape[-1])
    for row, drawn in zip(rows, result.cpu().numpy().reshape(-1, number), strict=True):
        for place, outcome in enumerate(drawn.tolist()):
            left = row if replacement or not place else np.where(np.isin(np.arange(len(row)), drawn[:place]), 0.0, row)
            yield Item(outcome=outcome, weights=left)


def _torch_bernoulli(result: Any, given: Any, p: Any = None, *_: Any) -> Iterator[Item]:
    heads = given if p is None else p
    chances = np.broadcast_to(np.asarray(heads.double().cpu() if hasattr(heads, "cpu") else heads), tuple(result.shape))
    for outcome, chance in zip(result.double().cpu().numpy().ravel().tolist(), chances.ravel().tolist(), strict=True):
        yield Item(outcome=int(outcome), weights=np.array([1 - chance, chance]))


def _torch_integers(result: Any, low: int, high: Any = None, *_: Any) -> Iterator[Item]:
    begin, end = (0, low) if not isinstance(high, int) else (low, high)
    yield from _whole(result.cpu().numpy(), begin, end - begin)


def _torch_integers_like(result: Any, _: Any, *ends: int) -> Iterator[Item]:
    yield from _torch_integers(result, *ends)


ENDS = {"float64": 2**53 + 1, "float32": 2**24 + 1, "float16": 2**11 + 1, "bfloat16": 2**8 + 1, "int64": 2**63 - 1,
         "int32": 2**31, "int16": 2**15, "int8": 2**7, "uint8": 2**8, "bool": 2}  # fmt: skip
"""Dtype -> number of integers from which ``random_`` draws."""


def _torch_random(result: Any, _: Any, *ends: int | None) -> Iterator[Item]:
    given = tuple(end for end in ends if end is not None)
    begin, end = given if len(given) == 2 else (0, given[0] if given else ENDS[_dtype(result)])
    yield from _whole(result.cpu().long().numpy(), begin, end - begin)


def _torch_order(result: Any, *_: Any) -> Iterator[Item]:
    """Yield an item for each element of the permutation ``result``: its index among the elements that are still left.

    The elements that are left are in ascending order.
    """
    left = sorted(result.tolist())
    for element in result.tolist():
        yield Item(outcome=left.index(element), weights=np.ones(len(left)))
        left.remove(element)


def _torch_heads(result: Any, trials: Any, chance: Any, *_: Any) -> Iterator[Item]:
    yield from _heads(*(tensor.double().cpu().numpy() for tensor in (result, trials, chance)))


_OF_NUMPY: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("random", "random_sample", "rand"), lambda result, *_: _points(result)),
    "uniform": _uniform,
    "exponential": _of_exponential(_scaled),
    "standard_exponential": _of_exponential(lambda result, *_: result),
    "gumbel": _gumbel,
    "logistic": _logistic,
    "beta": _beta,
    "normal": _normal,
    **dict.fromkeys(("standard_normal", "randn"), _standard_normal),
    "lognormal": _lognormal,
    "laplace": _laplace,
    "standard_cauchy": lambda result, *_: _cauchy(result),
    "triangular": _triangular,
    **dict.fromkeys(("poisson", "negative_binomial"), _count_from(0)),
    "logseries": _count_from(1),
    "geometric": _trials,
    "pareto": _of_exponential(lambda result, a, *_: np.log1p(result) * a),
    "power": _of_exponential(lambda result, a, *_: -np.log(result) * a),
    "rayleigh": _of_exponential(lambda result, scale=1.0, *_: (result / scale) ** 2 / 2),
    "weibull": _of_exponential(lambda result, a, *_: result**a),
    "integers": _integers,
    "randint": _integers,
    "choice": _choice,
    "multinomial": _counts,
    "binomial": _heads,
    **dict.fromkeys(("hypergeometric", "permutation", "permuted", "shuffle"), _places),
}
_OF_PYTHON: dict[str, Callable[..., Any]] = {
    "random": _points,
    "expovariate": _of_exponential(lambda result, lambd=1.0: result * lambd),
    "weibullvariate": _of_exponential(_weibull_of_python),
    **dict.fromkeys(("gauss", "normalvariate"), lambda result, mu=0.0, sigma=1.0: _normal(result, mu, sigma)),
    "lognormvariate": lambda result, mu=0.0, sigma=1.0: _lognormal(result, mu, sigma),
    "triangular": _triangular_of_python,
    "betavariate": _beta,
    "_randbelow": lambda result, n: _whole(result, 0, n),
    "getrandbits": _bits,
    "sample": _places,
    "binomialvariate": lambda result, n=1, p=0.5: _heads(result, n, p),
}
_OF_TORCH: dict[str, Callable[..., Any]] = {
    "rand": _torch_rand,
    "rand_like": _torch_rand,
    "uniform_": _torch_filled,
    "exponential_": _torch_exponential,
    "geometric_": _torch_geometric,
    **dict.fromkeys(("randn", "randn_like"), _torch_standard_normal),
    "normal": _torch_normal,
    "normal_": _torch_in_place(_normal),
    "log_normal_": _torch_in_place(lambda numbers, mean=1.0, std=2.0: _lognormal(numbers, mean, std)),
    "cauchy_": _torch_in_place(_cauchy),
    "poisson": lambda result, *_: _outcomes(_doubles(result)),
    "multinomial": _torch_multinomial,
    "bernoulli": _torch_bernoulli,
    "bernoulli_": _torch_bernoulli,
    "binomial": _torch_heads,
    "randint": _torch_integers,
    "randint_like": _torch_integers_like,
    "random_": _torch_random,
    "randperm": _torch_order,
}
ROWS: dict[tuple[str, str], Callable[..., Any]] = {
    (library, name): row
    for library, rows in (("numpy", _OF_NUMPY), ("random", _OF_PYTHON), ("torch", _OF_TORCH))
    for name, row in rows.items()
}
"""(library, name) -> ``row(result, *args, **kwargs)``, which yields the drawn items of a call."""
