"""The random calls of Python's standard library, answered by ``draws``, and the finite draws NumPy's share with them.

    with random_answered_by(draws):
        token = random.choices(range(4), weights=weights)[0]

The functions of ``random`` and all its generators are answered, also those made before the block: the library's own
algorithms run on answered ``random()`` and ``_randbelow()``. Not intercepted, and found by ``program_is_its_draws``: a
name bound before the block by ``from random import random`` (or another function written in C), and subclasses with
a ``random()`` of their own. Seeds only name streams: two streams of one seed are independent here.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from reference import Draws, Site
from specverify.intercept.deferred import Continuous, Uniform
from specverify.intercept.scalars import LazyFloat, caller, refusal, replaced

MOST_OUTCOMES = 10_000
MOST_TRIALS = 100
MOST_SHUFFLED = 8
MOST_BITS = 64
ONE_BELOW_ONE = 1 - 2**-53
_REFUSED = {
    "betavariate",
    "gammavariate",
    "gauss",
    "getstate",
    "lognormvariate",
    "normalvariate",
    "paretovariate",
    "randbytes",
    "setstate",
    "triangular",
    "vonmisesvariate",
    "weibullvariate",
}


class Answers:
    """Who answers in one block, and until when."""

    def __init__(self, draws: Draws, forced: float | None) -> None:
        """``forced`` is the value of every uniform, if there is one."""
        self.draws, self.forced, self.over = draws, forced, False


def shown(seed: Any) -> str:
    """Name a seed in a way that is the same in every run."""
    if seed is None:
        return ""
    whole = isinstance(seed, int | np.integer | list | tuple)
    return str(seed) if whole else type(seed).__name__


def one_by_one(draws: Draws, weights: Any, count: int, site: Site) -> list[int]:
    """Draw ``count`` different indices, each from the ``weights`` of those left."""
    left = np.array(weights, dtype=np.float64)
    found: list[int] = []
    for position in range(count):
        found.append(draws.categorical(left / left.sum(), (*site, position)))
        left[found[-1]] = 0.0
    return found


def one_of(draws: Draws, number: int, site: Site) -> int:
    """Draw one of ``number`` equally likely outcomes; refuses more than ``MOST_OUTCOMES``."""
    if number > MOST_OUTCOMES:
        raise refusal(f"{site[0]} has {number} outcomes, more than can be enumerated")
    return draws.categorical(np.full(number, 1.0 / number), site)


def masses(p: Any, number: int) -> Any:
    """Return the probabilities of ``choice``, checked as NumPy does."""
    if number <= 0:
        raise ValueError("a must be a positive integer or not empty")
    if p is None:
        return np.full(number, 1.0 / number)
    pmf = np.asarray(p, dtype=np.float64)
    if pmf.shape != (number,):
        raise ValueError("'a' and 'p' must have same size")
    if not (pmf >= 0).all():
        raise ValueError("probabilities are not non-negative or contain NaN")
    coarse = np.issubdtype(getattr(p, "dtype", np.int64), np.floating)
    if abs(pmf.sum() - 1) > math.sqrt(np.finfo(p.dtype if coarse else np.float64).eps):
        raise ValueError("probabilities do not sum to 1")
    return pmf / pmf.sum()


def heads(draws: Draws, trials: int, chance: float, site: Site) -> int:
    """Draw a binomial number of heads; refuses more than ``MOST_TRIALS``."""
    if not 0 <= trials <= MOST_TRIALS:
        raise refusal(f"{site[0]} of {trials} trials cannot be enumerated")
    pmf = [math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(trials + 1)]
    return draws.categorical(np.array(pmf), site)


def counts(draws: Draws, trials: int, pmf: Any, site: Site) -> list[int]:
    """Return how often each outcome came in ``trials`` draws, outcome by outcome given those before."""
    if trials == 1:
        only = draws.categorical(pmf, site)
        return [int(outcome == only) for outcome in range(len(pmf))]
    found: list[int] = []
    for outcome, mass in enumerate(pmf):
        rest = pmf[outcome:].sum()
        chance = 1.0 if outcome == len(pmf) - 1 else min(1.0, mass / rest) if rest > 0 else 0.0
        found.append(heads(draws, trials - sum(found), chance, (*site, outcome)))
    return found


def filled(size: Any, draw: Callable[[tuple[int, ...]], Any], dtype: Any = np.int64) -> Any:
    """Return one draw for each index of the shape, a scalar for none."""
    if size is None or size == ():
        return dtype(draw(()))
    found = np.empty(size, dtype=dtype)
    for index in np.ndindex(*found.shape):
        found[index] = draw(index)
    return found


def shuffled(draws: Draws, site: Site, number: int) -> list[int]:
    """Draw an order of ``number`` things; refuses more than ``MOST_SHUFFLED``."""
    if number > MOST_SHUFFLED:
        raise refusal(f"{site[0]} of {number} has more outcomes than can be enumerated")
    return one_by_one(draws, np.ones(number), number, site)


@contextmanager
def random_answered_by(draws: Draws, forced_uniform: float | None = None) -> Iterator[None]:
    """Answer the random calls of the standard library by ``draws`` inside the block.

    ``forced_uniform`` gives every uniform that value instead (0, or 1 for the largest float below it).
    """
    methods = _methods(Answers(draws, forced_uniform))
    with ExitStack() as stack:
        stack.enter_context(replaced(random.Random, methods))
        own = {name: method for name, method in methods.items() if name in vars(random.SystemRandom)}
        stack.enter_context(replaced(random.SystemRandom, own))
        shared: Any = random.seed.__self__  # type: ignore[attr-defined]
        names = [name for name in methods if hasattr(random, name) and not name.startswith("_")]
        stack.enter_context(replaced(random, {name: getattr(shared, name) for name in names}))
        yield


def _methods(answers: Answers) -> dict[str, Any]:
    """Return what stands for the methods of ``random.Random``."""
    streams: dict[int, tuple[Any, str]] = {}

    def site(generator: Any, function: str) -> Site:
        return f"random.{function}{streams.get(id(generator), (None, ''))[1]}", caller()

    def seed(self: Any, a: Any = None, version: int = 2) -> None:
        streams[id(self)] = (self, "" if a is None else f" seed({shown(a)})")

    refused = {name: _refusing(name) for name in _REFUSED}
    return {"seed": seed} | refused | _continuous(answers, site) | _finite(answers.draws, site)


def _continuous(answers: Answers, site: Callable[[Any, str], Site]) -> dict[str, Any]:
    def unit(generator: Any, function: str, least: float) -> Any:
        if answers.forced is not None:
            return float(min(max(answers.forced, least), ONE_BELOW_ONE))
        return LazyFloat(Continuous(Uniform(answers.draws, site(generator, function))))

    return {
        "random": lambda self: unit(self, _function("random"), 0.0),
        "expovariate": lambda self, lambd=1.0: -np.log(unit(self, "expovariate", 2**-53)) / lambd,
    }


def _finite(draws: Draws, site: Callable[[Any, str], Site]) -> dict[str, Any]:
    library_choices = random.Random.choices

    def below(self: Any, n: int) -> int:
        return one_of(draws, n, site(self, _function("_randbelow")))

    def getrandbits(self: Any, k: int) -> int:
        return one_of(draws, 2 ** min(k, MOST_BITS), site(self, "getrandbits"))

    def choices(self: Any, population: Any, weights: Any = None, *, cum_weights: Any = None, k: int = 1) -> list[Any]:
        if weights is None and cum_weights is None:
            return [population[one_of(draws, len(population), site(self, "choices"))] for _ in range(k)]
        found: list[Any] = library_choices(self, population, weights, cum_weights=cum_weights, k=k)
        return found

    def sample(self: Any, population: Sequence[Any], k: int, *, counts: Any = None) -> list[Any]:
        if counts is not None:
            population = [item for item, times in zip(population, counts, strict=True) for _ in range(times)]
        if not 0 <= k <= len(population):
            raise ValueError("Sample larger than population or is negative")
        return [population[place] for place in one_by_one(draws, np.ones(len(population)), k, site(self, "sample"))]

    def binomialvariate(self: Any, n: int = 1, p: float = 0.5) -> int:
        return heads(draws, n, p, site(self, "binomialvariate"))

    found = {"_randbelow": below, "getrandbits": getrandbits, "choices": choices, "sample": sample}
    return found | ({"binomialvariate": binomialvariate} if hasattr(random, "binomialvariate") else {})


def _refusing(name: str) -> Any:
    def refused(*args: Any, **kwargs: Any) -> Any:
        raise refusal(f"random.{name} cannot be answered by finitely many outcomes")

    return refused


def _function(default: str) -> str:
    """Return the function of the library that the foreign code called."""
    frame: Any = sys._getframe(2)  # noqa: SLF001
    name = default
    while frame is not None and frame.f_code.co_filename == random.__file__:
        name, frame = frame.f_code.co_name, frame.f_back
    return name
