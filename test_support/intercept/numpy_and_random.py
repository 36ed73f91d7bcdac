"""NumPy and ``random`` as libraries under test: the names that expressions may use, and the calls that draw."""

from __future__ import annotations

import inspect
import random
import secrets
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from specverify.intercept.cpython import generator_states
from specverify.intercept.cpython.sandbox import look_around
from specverify.intercept.numpy import BIT_GENERATORS, OWNER
from test_support.intercept.drawing_calls import Library

HERE = Path(__file__).parent
RNG, STATE, BITS = np.random.default_rng(0), np.random.RandomState(0), np.random.PCG64(0)
GENERATOR, SYSTEM = random.Random(0), random.SystemRandom()
P = np.array([0.5, 0.125, 0.375])
SEEDED = (RNG, STATE, BITS, OWNER, GENERATOR, random._inst)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Context manager that seeds every generator of the expressions, and restores their states."""
    before = [generator_states.read(generator) for generator in SEEDED]
    bits = np.random.get_bit_generator()
    for place, generator in enumerate(SEEDED):
        generator_states.write(generator, generator_states.state_in_world(generator, (seed * 8 + place) % 2**32))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of calls that are on their way out
            yield
    finally:
        np.random.set_bit_generator(bits)
        for generator, state in zip(SEEDED, before, strict=True):
            generator_states.write(generator, state)


def states() -> Any:
    """Return the states of all generators."""
    return [generator_states.read(generator) for generator in SEEDED]


def attempt(call: Any, *args: Any) -> Any:
    """Call a method that generators of the operating system may not implement, and ignore that error."""
    try:
        return call(*args)
    except NotImplementedError:
        return None


def _public(owner: Any) -> list[str]:
    return [name for name in vars(owner) if not name.startswith("_")]


def names_of_numpy() -> set[str]:
    """Return every public name by which NumPy draws or makes generators; which of them draw cannot be determined."""
    kinds = {np.random.Generator, np.random.RandomState, np.random.SeedSequence, *BIT_GENERATORS}
    kinds |= {kind for kind in vars(np.random).values() if inspect.isclass(kind)}
    found = {f"np.random.{kind.__name__}.{name}" for kind in kinds for name in _public(kind)}
    functions = (name for name in _public(np.random) if type(getattr(np.random, name)).__name__ != "PytestTester")
    return found | {f"np.random.{name}" for name in functions if not inspect.ismodule(getattr(np.random, name))}


def names_of_random() -> set[str]:
    """Return every public name of ``random``, of its generators and of ``secrets``."""
    kinds = {random.Random, random.SystemRandom}
    methods = {f"random.{kind.__name__}.{name}" for kind in kinds for name in dir(kind) if not name.startswith("_")}
    return methods | {f"random.{name}" for name in random.__all__} | {f"secrets.{name}" for name in secrets.__all__}


NUMPY = Library(
    HERE / "calls_of_numpy.txt",
    {
        "np.random.Generator": ("rng", np.random.Generator),
        "np.random.RandomState": ("state", np.random.RandomState),
        "np.random": ("np.random", np.random),
    },
    {"np": np, "rng": RNG, "state": STATE, "bits": BITS, "P": P, "STATE": np.random.RandomState(3).get_state()},
    seeded,
    states,
    names_of_numpy,
)
RANDOM = Library(
    HERE / "calls_of_random.txt",
    {
        "random": ("random", random),
        "random.Random": ("generator", random.Random),
        "random.SystemRandom": ("system", random.SystemRandom),
    },
    {
        "random": random,
        "generator": GENERATOR,
        "system": SYSTEM,
        "secrets": secrets,
        "attempt": attempt,
        "STATE": random.Random(3).getstate(),
    },
    seeded,
    states,
    names_of_random,
)

look_around()  # what ``secrets`` bound before is exchanged from here on
