"""Races of random clocks: which of several scores with noise is the largest, as one draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from reference import Draws, Site
from specverify.intercept import audit
from specverify.intercept.audit import Raced
from specverify.intercept.deferred import Continuous, NeedsValue, known, look


def race(draws: Draws, site: Site, entries: Sequence[Any]) -> int:
    """Return the winner of ``argmax`` over scores that hold one exponential clock each (the Gumbel trick).

    Every entry must be a monotone image of ``a - log E`` with its own E ~ Exp(1) and all of one form, so that entry j
    wins with probability proportional to exp(a_j); or minus infinity, which never wins.
    """
    weights, forms = [], set()
    for entry in entries:
        weight, form = _race_weight(entry)
        weights.append(weight)
        forms |= form
    racing = [(entry.uniform, weight) for entry, weight in zip(entries, weights, strict=True) if _is_random(entry)]
    for uniform, _ in racing:
        look(uniform.draw)
    audit.raced([audit.Racer(each.draw, each.known.questions, each.known.raced, weight) for each, weight in racing])
    clocks = [uniform.known for uniform, _ in racing]
    if forms not in ({"ratio"}, {"sum"}) or len(set(map(id, clocks))) < len(clocks):
        raise NeedsValue("the largest of several random scores is asked for, and they are not a race of clocks")
    if any(clock.raced or clock.low > 0 or clock.high < 1 for clock in clocks):
        raise NeedsValue("random noise is used in a second race, or after it was compared with a number")
    for uniform, weight in racing:
        uniform.known.raced = Raced(audit.place(), weight)
    pmf = np.exp(np.array(weights) - max(weights))
    return draws.categorical(pmf / pmf.sum(), site)


def _race_weight(entry: Any) -> tuple[float, set[str]]:
    """Return log weight and form of a race entry: ``w / E`` or ``a - log E``, with E written as -log u."""
    if not isinstance(entry, Continuous):
        number = float(known(entry))
        if number == -math.inf:
            return number, set()
        return (-math.inf, {"ratio"}) if number == 0.0 else (math.nan, {"number"})
    names = tuple(step.name for step in entry.steps)
    numbers = [step.number for step in entry.steps]
    if names[:2] != ("log", "negate"):
        return math.nan, {f"not a clock {names}"}
    if names[2:3] == ("divided into",) and all(name == "times" for name in names[3:]):
        product = math.prod(numbers[2:])
        return (math.log(product) if product > 0 else -math.inf), {"ratio"}
    if names[2:4] == ("log", "negate") and all(name == "plus" for name in names[4:]):
        return math.fsum(numbers[4:]), {"sum"}
    return math.nan, {f"unknown {names}"}


def _is_random(entry: Any) -> bool:
    return isinstance(entry, Continuous)
