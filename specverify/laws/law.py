"""Output laws as data, the target's own law, and the distance between two laws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any, NamedTuple

from specverify.laws.rounding import FLOAT32, Rounding, allowed, of_enumeration, worst
from specverify.reference import Task, Tokens


class Coverage(NamedTuple):
    """The numbers of rounds, drafts and acceptances that occurred in an enumeration.

    They show what the enumeration tested. If, for example, no round drafted a token, a right law is no evidence about
    the verification of drafts.
    """

    rounds: int = 0
    """Largest number of rounds on a path."""
    rounds_of_two: int = 0
    """Largest number of rounds on a path that drafted at least two tokens."""
    outcomes: frozenset[tuple[int, int]] = frozenset()
    """Pairs (drafted, accepted) of counts that occurred in some round."""


class Law(NamedTuple):
    """A law: ``probabilities`` maps outcomes to probabilities, exact or float64.

    ``missing`` is the probability of the paths that were not enumerated. ``coverage`` counts the rounds, drafts and
    acceptances on the enumerated paths.
    """

    probabilities: Mapping[Any, Any]
    missing: Any = 0
    runs: int = 0
    """Number of program runs of the enumeration."""
    decisions: int = 0
    """Largest number of draws on a path."""
    coverage: Coverage = Coverage()
    rounding: Rounding = Rounding()
    """Sources of rounding that were observed on the paths."""


class Distance(NamedTuple):
    """The total variation between two laws, which lies between ``low`` and ``high``.

    The two bounds are equal unless some probability is missing or the arithmetic rounds.
    """

    low: Any
    high: Any


def combined_law(parts: Sequence[Law]) -> Law:
    """Return the law of a program: the sum of ``parts``.

    Each part has the probabilities of one set of paths, not scaled to sum to 1. The sets are disjoint, and together
    contain all paths of the program.
    """
    probabilities: dict[Any, Any] = {}
    for part in parts:
        for outcome, mass in part.probabilities.items():
            probabilities[outcome] = probabilities.get(outcome, 0) + mass
    return Law(
        probabilities,
        sum(part.missing for part in parts),
        sum(part.runs for part in parts),
        max(part.decisions for part in parts),
        rounding=reduce(worst, (part.rounding for part in parts)),
    )


def is_rational(law: Law) -> bool:
    """Return whether every probability of ``law`` is an exact rational."""
    return all(isinstance(value, (Fraction, int)) for value in (*law.probabilities.values(), law.missing))


def total_variation(law: Law, target: Mapping[Any, Any]) -> Distance:
    """Return an interval that contains TV(law, target), whatever outcomes the missing probability belongs to.

    Its ends are two sums over the outcomes: of the amounts by which ``law`` exceeds the target, and of those by which
    it falls short.
    """
    outcomes = law.probabilities.keys() | target.keys()
    differences = [law.probabilities.get(outcome, 0) - target.get(outcome, 0) for outcome in outcomes]
    low = sum((value for value in differences if value > 0), start=Fraction(0))
    high = sum((-value for value in differences if value < 0), start=Fraction(0))
    return Distance(min(low, high), max(low, high))


def rounding_bound(law: Law, coarsest: float = FLOAT32) -> float:
    """Return an upper bound on the total variation by which rounding can change an enumerated law; 0 for rationals.

    The bound is computed from the dtypes, supports and lookups observed while the law was computed (``law.rounding``).
    It assumes floats with a spacing at 1 of at least ``coarsest``.
    """
    if is_rational(law):
        return 0.0
    return allowed(law.rounding, coarsest) + of_enumeration(law.rounding, law.runs)


def continued(law: Mapping[Tokens, Any], continuation: Callable[[Tokens], Mapping[Tokens, Any]]) -> dict[Tokens, Any]:
    """Return ``law`` with every outcome followed by tokens of the law ``continuation(outcome)``."""
    result: dict[Tokens, Any] = {}
    for tokens, mass in law.items():
        for rest, share in continuation(tokens).items():
            result[tokens + rest] = result.get(tokens + rest, 0) + mass * share
    return result


def target_law(task: Task, prompt: Tokens) -> dict[Tokens, Any]:
    """Return the law of the new tokens after ``prompt`` if the target of ``task`` decodes alone, without a decoder.

    Sequences end at an end-of-sequence token or at the horizon.
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
