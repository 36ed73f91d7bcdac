"""Numbers in the place of unknown ones: what the uniform numbers of a run may have been, after all that it asked.

A program that is run again with these computes with plain floats, and comes to the same end: what it does may not hang
on whether its numbers have a value. They lie near the ends of what is known of each, where a program that decides by
another rule parts soonest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from specverify.intercept.run import mode, mode_with
from specverify.intercept.unknowns.order import Runner

MARGIN = 0.02
"""The share of what is known that a number stays away from its ends, where programs may round."""
NARROW = 0.02
"""In less than this, margins are as good as what floats of 16 bits round."""
APART = 0.01
"""Clocks that ring nearer to each other than this, relative to their time, may be taken for each other."""
_TRIES = 40


class Known(Protocol):
    """What is known of a uniform number."""

    low: float
    high: float
    raced: Any
    runner: Runner | None
    together: Any


class Uniform(Protocol):
    """A uniform number, as far as it has a value."""

    @property
    def known(self) -> Known:
        """What is known of it."""


@contextmanager
def uniforms_made() -> Iterator[list[Uniform]]:
    """Collect the uniform numbers that are drawn inside the block, in their order."""
    made: list[Uniform] = []
    with mode_with(made=made):
        yield made


def note(uniform: Uniform) -> None:
    """Take note of a uniform number that was drawn, if somebody wants to know."""
    made = mode().made
    if made is not None:
        made.append(uniform)


def values_of(made: Iterable[Uniform], rng: np.random.Generator) -> list[float] | None:
    """Return a value for each uniform number that agrees with all answers; None where that is not told of each alone.

    Nothing is told of numbers that were compared together, of races of clamped noise, and of what is known too well.
    """
    known = [uniform.known for uniform in made]
    times: dict[Runner, float] = {}
    for root in {each.runner.root(): None for each in known if each.runner is not None}:
        found = _rung(root, rng)
        if found is None:
            return None
        times.update(found)
    values = [_value(each, times, rng) for each in {id(each): each for each in known}.values()]
    if any(value is None for value in values):
        return None
    by_number = dict(zip({id(each): each for each in known}, values, strict=True))
    return [float(by_number[id(each)]) for each in known]  # type: ignore[arg-type]  # none is None


def _value(known: Known, times: dict[Runner, float], rng: np.random.Generator) -> float | None:
    width = known.high - known.low
    if known.together or width < NARROW or (known.raced and known.runner is None):
        return None
    if known.runner is None:
        return known.low + width * float(rng.choice([MARGIN, 1 - MARGIN]))
    if width < 1:
        return None
    u = math.exp(-times[known.runner] * known.runner.rate)
    return 1 - u if known.runner.flipped else u


def _rung(root: Runner, rng: np.random.Generator) -> dict[Runner, float] | None:
    """Return when each clock of a tree rings, well apart; None if that is not found."""
    for _ in range(_TRIES):
        times: dict[Runner, float] = {}
        _ring(root, 0.0, times, rng)
        order = sorted(times.values())
        if all(later - sooner > APART * later for sooner, later in pairwise(order)):
            return times
    return None


def _ring(root: Runner, after: float, times: dict[Runner, float], rng: np.random.Generator) -> None:
    """Let the first clock of a tree ring, and then the trees behind it."""
    rate = sum(runner.rate for runner in root.all_behind())
    times[root] = after + float(rng.exponential()) / rate
    for runner in root.behind:
        _ring(runner, times[root], times, rng)
