"""A plain run with given random numbers: each drawing call of the libraries returns the next of them.

``Replayer`` is a ``Recorder`` that replaces the drawn numbers by given ones. The libraries draw as usual, so a result
has the library's type, shape and dtype, and the generators advance.

``values_for`` computes the result of a call for given uniforms and outcomes, the inverse of ``recorded_numbers``. There
is one rule for each library call, by its name, written from the documentation of the libraries. The rules for symbolic
numbers are not used here.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from statistics import NormalDist
from typing import Any

import numpy as np

from specverify.intercept.recorded_numbers import BESIDE, BITS, ENDS, POOL, Item, NotRecorded, items_of
from specverify.intercept.recorder import NOT_DRAWING, PASSED_THROUGH, Record, Recorder
from specverify.reference import Draws


class Replayer(Recorder):
    """A source of draws that gives a program the numbers of a list, in place of those that its libraries draw.

    A decoder may also draw by calling ``draws.categorical`` itself. The source of draws ``named``, a parameter of the
    constructor, chooses these outcomes.
    """

    def __init__(self, named: Draws, numbers: Iterable[Item]) -> None:
        """Store ``numbers``, which replace the drawn numbers in order; an empty ``Item()`` keeps the drawn number.

        ``named`` chooses the outcomes for a decoder that draws by calling ``draws.categorical``, where ``draws`` is the
        decoder's own parameter; such draws take no numbers from the list.
        """
        super().__init__(named)
        self._left = deque(numbers)
        self.parted = ""
        """Which call was the first to draw more numbers, or numbers of another kind, than it is given; "" if none."""
        self.returned: list[tuple[str, str, Any]] = []
        """(Library, name, result) of each call; the result of a shuffle is the order that it drew."""

    def call(self, library: str, name: str, real: Callable[..., Any], generator: Any, given: Any, named: Any) -> Any:
        """Call the library method ``real``, and return its result with the given numbers in place of the drawn ones.

        The parameters are those of ``Recorder.call``: ``library`` and ``name`` name the method, ``generator`` is its
        object, and ``given`` and ``named`` are its positional and keyword arguments.
        """
        result = super().call(library, name, real, generator, given, named)
        if name not in NOT_DRAWING | PASSED_THROUGH:
            self.returned.append((library, name, copy(self.records[-1].result if name == "shuffle" else result)))
        return result

    def keep(self, record: Record) -> None:
        """Append ``record`` to ``records``.

        For a call of torch, also append its result to ``returned``, the list of all random numbers that the program
        got; for other libraries, ``call`` does this.
        """
        super().keep(record)
        if record.library == "torch" and record.result.numel():
            self.returned.append(("torch", record.name, record.result))

    def key(self) -> Any:
        """Raise ``NotRecorded``, which ends a replay with given numbers for a program that uses JAX.

        JAX computes its numbers from keys, so they cannot be replaced by given numbers.
        """
        raise NotRecorded("the numbers of JAX are a function of keys")

    def given_for(self, record: Record) -> Any:
        """Return the values that replace the numbers of the call ``record``, in the shape of its result.

        If the call draws more numbers than are left, the result keeps the drawn numbers, and ``parted`` states this.
        """
        drawn = items_of(record)
        if len(drawn) > len(self._left):
            self.parted = self.parted or f"{record} draws {len(drawn)} numbers, of which {len(self._left)} are left"
            return record.result
        return values_for(record, [self._given(item, record) for item in drawn])

    def _given(self, drawn: Item, record: Record) -> Item:
        given = self._left.popleft()
        if given.outcome is None and math.isnan(given.low):
            return drawn
        if given.outcome is None and math.isnan(drawn.low):
            self.parted = self.parted or f"{record} draws an outcome, and a number is given"
            return drawn
        return given

    def left(self) -> str:
        """Return a sentence if the program drew fewer numbers than were given; "" otherwise."""
        return f"{len(self._left)} numbers that it is given are not drawn" if self._left else ""


# What a call returns for given numbers

Row = Callable[..., Any]
"""``row(items, result, *args, **kwargs)`` returns the values of a call; ``result`` is what the library drew."""


def values_for(record: Record, items: Sequence[Item]) -> Any:
    """Return the values, in order, that the call of ``record`` returns if its random numbers are ``items``.

    Raises ``NotRecorded`` for a call without a rule.
    """
    row = FED.get((record.library, record.name))
    if row is None:
        raise NotRecorded(f"{record} is not fed")
    named = {name: item for name, item in record.kwargs.items() if name not in BESIDE}
    with np.errstate(all="ignore"):
        return row(items, record.result, *record.args, **named)


def _shaped(numbers: Sequence[float], result: Any) -> Any:
    shape = tuple(result.shape) if hasattr(result, "shape") else np.shape(result)
    return np.asarray(numbers, dtype=np.float64).reshape(shape)


def _of_uniform(of: Callable[..., Any]) -> Row:
    """Return the rule (a ``Row``) of a library call that returns ``of(u, *parameters)``.

    ``u`` are the given uniform numbers, in the shape of the result, and ``parameters`` the arguments of the call.
    """

    def row(items: Sequence[Item], result: Any, *parameters: Any, **named: Any) -> Any:
        return of(_shaped([item.low for item in items], result), *parameters, **named)

    return row


def _of_exponential(of: Callable[..., Any]) -> Row:
    return _of_uniform(lambda u, *parameters, **named: of(-np.log(u), *parameters, **named))


def _uniform(u: Any, low: Any = 0.0, high: Any = 1.0, *_: Any) -> Any:
    return low + u * (np.asarray(high) - low)


def _gumbel(u: Any, loc: Any = 0.0, scale: Any = 1.0, *_: Any) -> Any:
    return loc - np.asarray(scale) * np.log(-np.log(u))


def _logistic(u: Any, loc: Any = 0.0, scale: Any = 1.0, *_: Any) -> Any:
    return loc + np.asarray(scale) * (np.log(u) - np.log1p(-u))


_quantile = np.vectorize(NormalDist().inv_cdf, otypes=[float])


def _normal(u: Any, loc: Any = 0.0, scale: Any = 1.0, *_: Any) -> Any:
    return loc + np.asarray(scale) * _quantile(u)


def _lognormal(u: Any, mean: Any = 0.0, sigma: Any = 1.0, *_: Any) -> Any:
    return np.exp(_normal(u, mean, sigma))


def _laplace(u: Any, loc: Any = 0.0, scale: Any = 1.0, *_: Any) -> Any:
    return loc + np.asarray(scale) * np.where(u < 0.5, np.log(2 * u), -np.log(2 * (1 - u)))


def _cauchy(u: Any, median: Any = 0.0, sigma: Any = 1.0, *_: Any) -> Any:
    return median + np.asarray(sigma) * np.tan(np.pi * (u - 0.5))


def _triangular(u: Any, left: float = 0.0, mode: Any = 0.5, right: float = 1.0, *_: Any) -> Any:
    share = (mode - left) / (right - left)
    rising = left + np.sqrt(u * (right - left) * (mode - left))
    return np.where(u < share, rising, right - np.sqrt((1 - u) * (right - left) * (right - mode)))


def _triangular_of_python(u: Any, low: float = 0.0, high: float = 1.0, mode: Any = None) -> Any:
    return _triangular(u, low, (low + high) / 2 if mode is None else mode, high)


def _beta(u: Any, a: float, b: float, *_: Any) -> Any:
    return u ** (1 / a) if b == 1 else 1 - u ** (1 / b)


def _trials(u: Any, p: Any, *_: Any) -> Any:
    return np.floor(np.log(u) / np.log1p(-np.asarray(p))) + 1


def _outcomes(items: Sequence[Item], *_: Any, **__: Any) -> Any:
    return [item.outcome for item in items]


def _count_from(first: int) -> Row:
    return lambda items, *_, **__: [first + int(item.outcome or 0) for item in items]


def _place(item: Item, number: int) -> int:
    return item.outcome if item.outcome is not None else min(math.floor(item.low * number), number - 1)


def _integers(
    items: Sequence[Item], _: Any, low: Any, high: Any = None, *rest: Any, endpoint: bool = False, **__: Any
) -> Any:
    endpoint = endpoint or (len(rest) > 2 and bool(rest[2]))
    begin, end = (0, int(low)) if high is None else (int(low), int(high) + endpoint)
    end += endpoint and high is None
    return [begin + _place(item, end - begin) for item in items]


def _choice(items: Sequence[Item], _: Any, a: Any, size: Any = None, replace: bool = True, *__: Any, **___: Any) -> Any:
    number = int(a) if np.ndim(a) == 0 else len(a)
    if replace and np.ndim(a) == 1 and number > POOL and np.asarray(a).dtype != object:
        firsts = np.unique(a, return_index=True)[1]
        return [int(firsts[item.outcome]) for item in items]
    return _outcomes(items)


def _counts(items: Sequence[Item], result: Any, n: int, *_: Any, **__: Any) -> Any:
    if n != 1:
        return _outcomes(items)
    whole = np.zeros((len(items), np.shape(result)[-1]), dtype=np.int64)
    whole[np.arange(len(items)), _outcomes(items)] = 1
    return whole


def _order(items: Sequence[Item], result: Any, *_: Any, **__: Any) -> Any:
    left = sorted(result.tolist())
    return [left.pop(int(item.outcome or 0)) for item in items]


def _torch_uniform(items: Sequence[Item], result: Any, low: float = 0.0, high: float = 1.0) -> Any:
    u, bits = _shaped([item.low for item in items], result), BITS.get(str(result.dtype).removeprefix("torch."))
    return _uniform(u if bits is None else np.floor(u * 2.0**bits) / 2.0**bits, low, high)


def _torch_integers(items: Sequence[Item], _: Any, low: int, high: Any = None, *__: Any) -> Any:
    begin, end = (0, low) if not isinstance(high, int) else (low, high)
    return [begin + _place(item, end - begin) for item in items]


def _torch_random(items: Sequence[Item], result: Any, _: Any, *ends: Any) -> Any:
    given = [end for end in ends if end is not None] or [ENDS[str(result.dtype).removeprefix("torch.")]]
    begin, end = given if len(given) == 2 else (0, given[0])
    return [begin + _place(item, end - begin) for item in items]


def _doubles(given: Any) -> Any:
    return given.double().cpu().numpy() if hasattr(given, "cpu") else given


def _in_place(of: Callable[..., Any]) -> Row:
    """Return the rule (a ``Row``) of a tensor method that fills its tensor with ``of(u, *parameters)``.

    ``u`` are the given uniform numbers, in the shape of the tensor, and ``parameters`` the other arguments of the call.
    """
    return _of_uniform(lambda u, _, *parameters, **named: of(u, *parameters, **named))


_EXPONENTIALS: dict[str, Callable[..., Any]] = {
    "exponential": lambda drawn, scale=1.0, *_: drawn * scale,
    "standard_exponential": lambda drawn, *_: drawn,
    "pareto": lambda drawn, a, *_: np.expm1(drawn / a),
    "power": lambda drawn, a, *_: np.exp(-drawn / a),
    "rayleigh": lambda drawn, scale=1.0, *_: scale * np.sqrt(2 * drawn),
    "weibull": lambda drawn, a, *_: drawn ** (1 / np.asarray(a)),
}
_OF_NUMPY: dict[str, Row] = {
    **dict.fromkeys(("random", "random_sample", "rand"), _of_uniform(lambda u, *_: u)),
    **{name: _of_exponential(of) for name, of in _EXPONENTIALS.items()},
    "uniform": _of_uniform(_uniform),
    "gumbel": _of_uniform(_gumbel),
    "logistic": _of_uniform(_logistic),
    "beta": _of_uniform(_beta),
    "normal": _of_uniform(_normal),
    **dict.fromkeys(("standard_normal", "randn"), _of_uniform(lambda u, *_: _normal(u))),
    "lognormal": _of_uniform(_lognormal),
    "laplace": _of_uniform(_laplace),
    "standard_cauchy": _of_uniform(lambda u, *_: _cauchy(u)),
    "triangular": _of_uniform(_triangular),
    "geometric": _of_uniform(_trials),
    **dict.fromkeys(("poisson", "negative_binomial"), _count_from(0)),
    "logseries": _count_from(1),
    **dict.fromkeys(("integers", "randint"), _integers),
    "choice": _choice,
    "multinomial": _counts,
    **dict.fromkeys(("binomial", "hypergeometric", "permutation", "permuted", "shuffle"), _outcomes),
}
_OF_PYTHON: dict[str, Row] = {
    "random": _of_uniform(lambda u: u),
    "expovariate": _of_exponential(lambda drawn, lambd=1.0: drawn / lambd),
    "weibullvariate": _of_exponential(lambda drawn, alpha, beta: alpha * drawn ** (1 / beta)),
    **dict.fromkeys(("gauss", "normalvariate"), _of_uniform(lambda u, mu=0.0, sigma=1.0: _normal(u, mu, sigma))),
    "lognormvariate": _of_uniform(lambda u, mu=0.0, sigma=1.0: _lognormal(u, mu, sigma)),
    "triangular": _of_uniform(_triangular_of_python),
    "betavariate": _of_uniform(_beta),
    "_randbelow": lambda items, _, n: [_place(item, n) for item in items],
    "getrandbits": lambda items, _, k: [_place(item, 2**k) for item in items],
    **dict.fromkeys(("sample", "binomialvariate"), _outcomes),
}
_OF_TORCH: dict[str, Row] = {
    **dict.fromkeys(("rand", "rand_like"), lambda items, result, *_: _torch_uniform(items, result)),
    "uniform_": lambda items, result, _, *ends, **named: _torch_uniform(items, result, *ends, **named),
    "exponential_": _in_place(lambda u, rate=1.0: -np.log(u) / rate),
    "geometric_": _in_place(_trials),
    **dict.fromkeys(("randn", "randn_like"), _of_uniform(lambda u, *_: _normal(u))),
    "normal": _of_uniform(lambda u, mean=0.0, std=1.0, *_: _normal(u, _doubles(mean), _doubles(std))),
    "normal_": _in_place(_normal),
    "log_normal_": _in_place(lambda u, mean=1.0, std=2.0: _lognormal(u, mean, std)),
    "cauchy_": _in_place(_cauchy),
    **dict.fromkeys(("poisson", "multinomial", "bernoulli", "bernoulli_", "binomial"), _outcomes),
    "randint": _torch_integers,
    "randint_like": lambda items, result, _, *ends: _torch_integers(items, result, *ends),
    "random_": _torch_random,
    "randperm": _order,
}
FED: dict[tuple[str, str], Row] = {
    (library, name): row
    for library, rows in (("numpy", _OF_NUMPY), ("random", _OF_PYTHON), ("torch", _OF_TORCH))
    for name, row in rows.items()
}
"""(library, name) -> row, for the same calls as ``recorded_numbers.ROWS``."""
