"""Output laws as data, the target's own law, and the distance between two laws."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from reference import Task, Tokens


class Coverage(NamedTuple):
    """What the enumeration went through, so that a law over trivial rounds is not mistaken for evidence."""

    rounds: int = 0
    """The most rounds on one path."""
    rounds_of_two: int = 0
    """The most rounds on one path that drafted at least two tokens."""
    outcomes: frozenset[tuple[int, int]] = frozenset()
    """The (drafted, accepted) pairs that occurred."""


class Law(NamedTuple):
    """Outcome -> probability, exact or float64; ``missing`` is the probability of what was not enumerated."""

    probabilities: Mapping[Any, Any]
    missing: Any = 0
    runs: int = 0
    """How often the program ran to compute this."""
    decisions: int = 0
    """The most draws on one path."""
    coverage: Coverage = Coverage()


class Distance(NamedTuple):
    """Total variation, as an interval when probability is missing or arithmetic rounds."""

    low: Any
    high: Any


def combined_law(parts: Sequence[Law]) -> Law:
    """Return the law whose paths were enumerated in several parts."""
    probabilities: dict[Any, Any] = {}
    for part in parts:
        for outcome, mass in part.probabilities.items():
            probabilities[outcome] = probabilities.get(outcome, 0) + mass
    return Law(
        probabilities,
        sum(part.missing for part in parts),
        sum(part.runs for part in parts),
        max(part.decisions for part in parts),
    )


def is_rational(law: Law) -> bool:
    """Return whether every probability is an exact rational."""
    return all(isinstance(value, (Fraction, int)) for value in (*law.probabilities.values(), law.missing))


def total_variation(law: Law, target: Mapping[Any, Any]) -> Distance:
    """Return the interval that holds TV(law, target), wherever the missing probability belongs.

    Missing mass can only be added: it cannot lower an excess over the target, and it can at most leave every deficit.
    """
    outcomes = law.probabilities.keys() | target.keys()
    differences = [law.probabilities.get(outcome, 0) - target.get(outcome, 0) for outcome in outcomes]
    low = sum((value for value in differences if value > 0), start=Fraction(0))
    high = sum((-value for value in differences if value < 0), start=Fraction(0))
    return Distance(min(low, high), max(low, high))


def rounding_bound(law: Law, vocabulary: int, epsilon: float = sys.float_info.epsilon) -> float:
    """Return how far in total variation rounding can move an enumerated law; 0 for rationals.

    ``epsilon`` is the spacing of the floats near 1 that pmfs are computed in, float64 unless told.

    One decision is computed from its pmfs by at most 2 V additions and V + 4 other roundings, so its conditional law is
    off by at most (4 V + 16) epsilon in total variation (a residual's relative error grows as its mass shrinks, but it
    is weighted by that mass). Total variation adds up over the decisions of a path, and summing ``runs`` weights adds
    at most ``runs`` epsilon.
    """
    if is_rational(law):
        return 0.0
    return epsilon * law.decisions * (4 * vocabulary + 16) + sys.float_info.epsilon * law.runs


def target_law(task: Task, prompt: Tokens) -> dict[Tokens, Any]:
    """Return the law of the new tokens when the target decodes alone: the product of its conditionals.

    Computed without running any decoder. Sequences end at an end-of-sequence token or at the horizon.
    """
    law: dict[Tokens, Any] = {}
    stack: list[tuple[Tokens, Any]] = [((), 1)]
    while stack:
        new, weight = stack.pop()
        if len(new) == task.horizon or (new and new[-1] in task.eos):
            law[new] = weight
            continue
        for token, mass in enumerate(task.target(prompt + new).tolist()):
            if mass > 0:
                stack.append(((*new, token), weight * mass))
    return law
