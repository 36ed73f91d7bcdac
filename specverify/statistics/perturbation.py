"""Laws at a given total variation from another law that are hard to detect; a test must reject them nevertheless."""

from __future__ import annotations

import math
from typing import Any, Final

from specverify.base.arguments import is_number
from specverify.statistics.pooling import Probabilities, normalised

OUTSIDE: Final = "an outcome outside the law"


def perturbed(law: Probabilities, tv: float) -> dict[Any, float]:
    """Return a law at total variation ``tv`` from ``law``, on the same outcomes, near the worst case for chi-square.

    The outcomes are split into two parts of nearly equal mass; probabilities of the heavier one are scaled down, those
    of the other up. For a law with one outcome, the other part is ``OUTSIDE``. Raises ``ValueError`` if ``tv`` is
    negative or more than ``largest_perturbation``.
    """
    supported = normalised(law)
    largest = largest_perturbation(law)
    if not is_number(tv) or not 0 <= tv <= largest:
        raise ValueError(f"cannot move the law by a total variation of {tv}, expected one between 0 and {largest}")
    shrinking, growing = halves(law)
    loss, gain = 1 - tv / _mass_of(shrinking), 1 + tv / _mass_of(growing) if growing else 1.0
    moved = {outcome: mass * (loss if outcome in shrinking else gain) for outcome, mass in supported.items()}
    return moved if growing else moved | {OUTSIDE: tv}


def largest_perturbation(law: Probabilities) -> float:
    """Return the largest total variation that ``perturbed`` accepts for ``law``: the mass of the part that shrinks."""
    return min(1.0, _mass_of(halves(law)[0]))


def halves(law: Probabilities) -> tuple[dict[Any, float], dict[Any, float]]:
    """Split the possible outcomes into two parts of nearly equal mass, the heavier first.

    The second part is empty if the law has one outcome.
    """
    parts: tuple[dict[Any, float], dict[Any, float]] = ({}, {})
    masses = [0.0, 0.0]
    for outcome, mass in sorted(normalised(law).items(), key=lambda item: -item[1]):
        lighter = 0 if masses[0] <= masses[1] else 1
        parts[lighter][outcome] = mass
        masses[lighter] += mass
    return parts if masses[0] >= masses[1] else (parts[1], parts[0])


def _mass_of(part: dict[Any, float]) -> float:
    """Return the total probability of the outcomes in ``part``."""
    return math.fsum(part.values())
