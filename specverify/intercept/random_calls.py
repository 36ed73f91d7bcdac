"""The random calls of Python's standard library, answered by ``draws``.

    with random_answered_by(draws):
        token = random.choices(range(4), weights=weights)[0]

The functions of ``random`` and all its generators are answered, also those made before the block: the library's own
algorithms run on answered ``random()`` and ``_randbelow()``. Not intercepted, and found by ``program_is_its_draws``: a
name bound before the block by ``from random import random`` (or another function written in C), and subclasses with
a ``random()`` of their own. Two streams of one seed are one stream: see ``streams``.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from reference import Draws, Site
from specverify.intercept.boundary import Boundary
from specverify.intercept.caller import caller
from specverify.intercept.deferred import Continuous
from specverify.intercept.finite import Answers, heads, one_by_one, one_of, shown
from specverify.intercept.scalars import LazyFloat, refusal, replaced
from specverify.intercept.streams import SeededStream

MOST_BITS = 64
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


@contextmanager
def random_answered_by(draws: Draws, forced_uniform: float | Boundary | None = None) -> Iterator[None]:
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
    streams: dict[int, tuple[Any, str, SeededStream]] = {}

    def asks(generator: Any, function: str) -> tuple[SeededStream, Site]:
        _, name, stream = streams.setdefault(id(generator), (generator, "", answers.stream()))
        return stream, (f"random.{function}{name}", caller())

    def seed(self: Any, a: Any = None, version: int = 2) -> None:
        streams[id(self)] = (self, "" if a is None else f" seed({shown(a)})", answers.stream("random", a))

    refused = {name: _refusing(name) for name in _REFUSED}
    return {"seed": seed} | refused | _continuous(answers, asks) | _finite(asks)


Asks = Callable[[Any, str], tuple[SeededStream, Site]]
"""A generator and its function -> who answers, and the site."""


def _continuous(answers: Answers, asks: Asks) -> dict[str, Any]:
    boundary = answers.boundary

    def unit(generator: Any, function: str) -> Any:
        stream, site = asks(generator, function)
        return LazyFloat(Continuous(stream.uniform(site, "expovariate" if function == "expovariate" else "random")))

    if boundary is not None:
        return {
            "random": lambda _: boundary.uniform(f"random.{_function('random')}"),
            "expovariate": lambda _, lambd=1.0: boundary.exponential("random.expovariate", -0.0) / lambd,
        }
    return {
        "random": lambda self: unit(self, _function("random")),
        "expovariate": lambda self, lambd=1.0: -np.log(unit(self, "expovariate")) / lambd,
    }


def _finite(asks: Asks) -> dict[str, Any]:
    library_choices = random.Random.choices

    def below(self: Any, n: int) -> int:
        return one_of(*asks(self, _function("_randbelow")), n)

    def getrandbits(self: Any, k: int) -> int:
        return one_of(*asks(self, "getrandbits"), 2 ** min(k, MOST_BITS))

    def choices(self: Any, population: Any, weights: Any = None, *, cum_weights: Any = None, k: int = 1) -> list[Any]:
        if weights is None and cum_weights is None:
            return [population[one_of(*asks(self, "choices"), len(population))] for _ in range(k)]
        found: list[Any] = library_choices(self, population, weights, cum_weights=cum_weights, k=k)
        return found

    def sample(self: Any, population: Sequence[Any], k: int, *, counts: Any = None) -> list[Any]:
        if counts is not None:
            population = [item for item, times in zip(population, counts, strict=True) for _ in range(times)]
        if not 0 <= k <= len(population):
            raise ValueError("Sample larger than population or is negative")
        return [population[place] for place in one_by_one(*asks(self, "sample"), np.ones(len(population)), k)]

    def binomialvariate(self: Any, n: int = 1, p: float = 0.5) -> int:
        return heads(*asks(self, "binomialvariate"), n, p)

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
