"""Compare two samplers of unknown laws: a call with speculation, and the same call without.

With n samples of each, counts a and b in a cell, the statistic is ``sum (a - b)^2 / (a + b)``. Under one common law it
tends to a chi-square with ``cells - 1`` degrees of freedom; under laws p and p' to a noncentral one with noncentrality
``lambda = n sum (p - p')^2 / (p + p')``. By Cauchy-Schwarz, with ``2 TV = sum |p - p'|`` and ``sum (p + p') = 2``,

    (2 TV)^2 <= 2 sum (p - p')^2 / (p + p'),    hence    lambda >= 2 n TV^2:

each sampler needs twice the samples that a comparison with a known law needs. The cells are chosen from a pilot sample
of the call without speculation, which is then discarded, so that they do not depend on the tested samples. An outcome
that is frequent in the pilot sample has a cell of its own. All other outcomes share one cell.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

from specverify.base.arguments import check_probability
from specverify.statistics.confirmation import (
    FitVerdict,
    Sampler,
    multinomial_counts,
    sampled_counts,
    stage_level,
)
from specverify.statistics.perturbation import largest_perturbation, perturbed
from specverify.statistics.planning import noncentrality_needed
from specverify.statistics.pooling import Counts

PILOT: Final = 2000
"""Number of samples of the pilot, from which the cells are chosen."""
MOST_SAMPLES: Final = 10**8
"""Upper limit of samples from each side; a call that decodes takes at least milliseconds."""
FEWEST: Final = 20
"""Smallest pilot count of an outcome that gets a cell of its own."""


class TwoSamples(NamedTuple):
    """The result of comparing two samples of equal size with each other."""

    samples: int
    """Number of samples from each side."""
    cells: int
    statistic: float
    p_value: float
    tv_observed: float
    """Total variation between the two empirical laws of the cells."""


class Agreement(NamedTuple):
    """A verdict on two samplers, with the guarantees planned before the judged samples were drawn."""

    verdict: FitVerdict
    first: TwoSamples
    second: TwoSamples | None
    """The confirmation on fresh samples of both sides; None if the first stage was not suspicious."""
    detectable_tv: float
    """Two laws at total variation >= this are distinguished with probability >= ``1 - miss``."""


def agreement(
    sampler: Sampler, plain: Sampler, *, detect: float, false_alarm: float, miss: float, seed: int
) -> Agreement:
    """Decide whether the samplers ``sampler`` and ``plain`` have the same law.

    An alarm is confirmed on four times as many fresh samples.

    Args:
        sampler: Sampler under test, such as a call with speculation.
        plain: Sampler to compare with; a pilot sample of it also chooses the cells.
        detect: Total variation between the laws that must be detected.
        false_alarm: Bound on the probability that equal laws are refuted.
        miss: Bound on the probability that laws at total variation ``detect`` or more are not refuted.
        seed: Seed of all samples.

    Returns:
        The verdict. UNKNOWN replaces FITS if samples of a wrong law, the control, are not refuted.

    Raises:
        ValueError: If 10**8 samples are not enough.
    """
    check_probability(detect, "detect")
    level = stage_level(false_alarm)
    pilot = sampled_counts(plain, PILOT, seed)
    separate = tuple(sorted(outcome for outcome, count in pilot.items() if count >= FEWEST))
    rare = sum(count for count in pilot.values() if count < FEWEST) / PILOT
    cells = len(separate) + 1
    samples = _samples(detect, rare, cells, level, miss)
    needed = noncentrality_needed(cells, level, miss / 2)
    detectable = min(1.0, math.sqrt(needed / (2 * samples)) + rare)
    first = two_samples(sampled_counts(sampler, samples, seed + 1), sampled_counts(plain, samples, seed + 2), separate)
    second = None
    if first.p_value <= level:
        more = 4 * samples
        second = two_samples(sampled_counts(sampler, more, seed + 3), sampled_counts(plain, more, seed + 4), separate)
    law = {outcome: count / PILOT for outcome, count in pilot.items()}
    moved = perturbed(law, min(2 * detectable, largest_perturbation(law)))
    control = two_samples(
        multinomial_counts(moved, samples, seed + 5), multinomial_counts(law, samples, seed + 6), separate
    )
    able = control.p_value <= level and detectable < 1
    refuted = second is not None and second.p_value <= level
    verdict = FitVerdict.REFUTED if refuted else FitVerdict.FITS if able else FitVerdict.UNKNOWN
    return Agreement(verdict, first, second, detectable)


def two_samples(one: Counts, other: Counts, separate: tuple[Any, ...]) -> TwoSamples:
    """Compare two samples of equal size: each outcome in ``separate`` is a cell, and all other outcomes share one.

    Raises ``ValueError`` if the sizes differ.
    """
    from scipy.special import chdtrc  # noqa: PLC0415 - a tenth of a second, and only where something is sampled

    samples = sum(one.values())
    if samples != sum(other.values()):
        raise ValueError(f"{samples} samples and {sum(other.values())} were given, expected as many of each")
    pairs = [(one.get(outcome, 0), other.get(outcome, 0)) for outcome in separate]
    pairs.append((samples - sum(a for a, _ in pairs), samples - sum(b for _, b in pairs)))
    statistic = math.fsum((a - b) ** 2 / (a + b) for a, b in pairs if a + b)
    return TwoSamples(
        samples,
        len(pairs),
        statistic,
        float(chdtrc(len(pairs) - 1, statistic)),
        sum(abs(a - b) for a, b in pairs) / 2 / samples,
    )


def _samples(detect: float, rare: float, cells: int, level: float, miss: float) -> int:
    """Return the number of samples of each sampler that detect a total variation of ``detect`` on ``cells`` cells.

    ``rare``, the probability of the pooled outcomes, is subtracted from ``detect`` first, up to half of ``detect``.
    ``level`` is the level of each stage and ``miss`` the total miss probability. Raises ``ValueError`` above
    ``MOST_SAMPLES``.
    """
    visible = max(detect - rare, detect / 2)
    samples = math.ceil(noncentrality_needed(cells, level, miss / 2) / (2 * visible**2))
    if samples > MOST_SAMPLES:
        raise ValueError(f"{samples} samples of each would be needed to see {detect}, expected a larger one")
    return samples
