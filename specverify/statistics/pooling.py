"""Partition of the outcomes of a law into outcomes with a cell of their own, and outcomes that share the pooled cell.

The partition depends on the law and on the number of samples, never on the counts. A partition chosen from the counts
would change the law of the statistic: merging a suspicious cell hides it, splitting it off exaggerates it, and the
nominal level is wrong in both cases. With a fixed partition the power can be planned before the first sample.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from specverify.base.arguments import argument_error, check_count, check_positive, is_number

# Mapping is invariant in its keys: Mapping[Hashable, ...] would refuse a dict keyed by tuples of tokens.
Probabilities: TypeAlias = Mapping[Any, float]
Counts: TypeAlias = Mapping[Any, int]


class Partition(NamedTuple):
    """The outcomes of positive probability: those with a cell of their own, and those that share the pooled cell.

    Both fields map an outcome to its probability: ``separate`` has the former outcomes, ``pooled`` the latter.
    """

    separate: dict[Any, float]
    pooled: dict[Any, float]

    @property
    def cells(self) -> int:
        """Return the number of cells, including the pooled cell if there is one."""
        return len(self.separate) + bool(self.pooled)

    @property
    def pooled_mass(self) -> float:
        """Return the probability of the pooled cell under the law; 0 if there is none."""
        return math.fsum(self.pooled.values())


def partition(law: Probabilities, samples: int, minimum_expected: float = 10.0) -> Partition:
    """Return the partition of ``law`` on which ``samples`` samples are tested.

    Outcomes with an expected count below ``minimum_expected`` are pooled into one cell. If its expected count is still
    too small, the least likely of the others joins it. A cell with a single outcome is not called pooled. Raises
    ``ValueError`` for an illegal law, count or threshold.
    """
    check_count(samples, "samples")
    check_positive(minimum_expected, "minimum_expected", "samples")
    supported = normalised(law)
    threshold = minimum_expected / samples
    pooled = {outcome: mass for outcome, mass in supported.items() if mass < threshold}
    separate = {outcome: mass for outcome, mass in supported.items() if mass >= threshold}
    if pooled and separate and math.fsum(pooled.values()) < threshold:
        least = min(separate, key=separate.__getitem__)
        pooled[least] = separate.pop(least)
    return Partition(separate, pooled) if len(pooled) != 1 else Partition(supported, {})


def normalised(law: Probabilities) -> dict[Any, float]:
    """Return the outcomes of ``law`` that have positive probability, with probabilities in float64 that sum to 1.

    Raises ``ValueError`` if a probability is negative or not a number, or if the sum differs from 1 by more than 1e-9
    times the number of outcomes.
    """
    if not isinstance(law, Mapping):
        raise argument_error("the law", law, "a mapping from outcomes to probabilities")
    for outcome, mass in law.items():
        if (type(mass) is not float and not is_number(mass)) or not mass >= 0:
            raise ValueError(f"the law gives {outcome!r} probability {mass}, expected a number of at least 0")
    total = math.fsum(law.values())
    if not abs(total - 1) <= 1e-9 * len(law):
        raise ValueError(f"the law's {len(law)} probabilities sum to {total}, expected 1 within 1e-9 each")
    return {outcome: float(mass) / total for outcome, mass in law.items() if mass > 0}
