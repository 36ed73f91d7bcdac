"""The two-stage test: REFUTED requires that fresh samples confirm the alarm of the first stage."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple, TypeAlias

import numpy as np

from specverify.base.arguments import check_callable, check_count, check_probability, check_seed
from specverify.statistics.calibration import calibrated_level
from specverify.statistics.goodness_of_fit import (
    GoodnessOfFit,
    detectable_total_variation,
    goodness_of_fit,
    observed_counts,
)
from specverify.statistics.perturbation import largest_perturbation, perturbed
from specverify.statistics.pooling import Counts, Probabilities

Sampler: TypeAlias = Callable[[int, int], Counts]
"""``sampler(samples, seed)`` returns counts of ``samples`` independent samples; different seeds give independent
samples."""


class FitVerdict(StrEnum):
    """The result for a sampler: FITS, REFUTED or UNKNOWN."""

    FITS = "fits"
    REFUTED = "refuted"
    UNKNOWN = "unknown"


class ConfirmedFit(NamedTuple):
    """The verdict on a sampler, with the guarantees that were planned before the first sample."""

    verdict: FitVerdict
    first: GoodnessOfFit
    second: GoodnessOfFit | None
    """The confirmation on fresh samples. None if the first stage was not suspicious, or observed an outcome of
    probability 0."""
    false_alarm: float
    """Bound on the probability of REFUTED for a correct sampler."""
    level: float
    """Significance level of each stage, see ``stage_level``."""
    detectable_tv: float
    """Every law at total variation >= this is refuted with probability >= ``1 - miss``."""
    miss: float
    control: bool
    """Whether the negative control was rejected; it must be."""


def confirmed_fit(
    sampler: Sampler,
    law: Probabilities,
    *,
    samples: int,
    false_alarm: float,
    miss: float,
    seed: int,
    confirmation_factor: int = 4,
    minimum_expected: float = 10.0,
) -> ConfirmedFit:
    """Decide whether ``sampler`` draws from ``law``, by two stages.

    Stage one tests ``samples`` samples. If it rejects, stage two tests ``confirmation_factor`` times as many fresh
    samples on the same partition. REFUTED requires that both stages reject, or that an outcome of probability 0 occurs.

    Args:
        sampler: Sampler under test.
        law: Outcome -> probability.
        samples: Number of samples of stage one.
        false_alarm: Bound on the probability that a correct sampler is refuted.
        miss: Bound on the probability that a law at the resulting ``detectable_tv`` or more is not refuted.
        seed: Seed of all samples.
        confirmation_factor: Samples of stage two for each of stage one.
        minimum_expected: Smallest expected count of a cell.

    Returns:
        The verdict. UNKNOWN replaces FITS if ``detectable_tv`` is 1, or if stage one does not reject samples of a
        wrong law, the negative control.

    Raises:
        ValueError: For illegal numbers, and for a sampler that returns another number of samples.
    """
    check_callable(sampler, "the sampler", arguments=2)
    check_count(samples, "samples")
    check_count(confirmation_factor, "confirmation_factor")
    check_probability(miss, "miss")
    # False alarm: the stages are independent, and each rejects a correct sampler with probability at most
    # sqrt(false_alarm) (see ``stage_level``). Both reject with probability at most the product, false_alarm.
    # Miss: ``detectable_tv`` is planned for stage one at miss / 2. Stage two has the same cells and
    # ``confirmation_factor`` times the noncentrality, so it misses at most as often. By the union bound, a stage misses
    # with probability at most miss.
    # Negative control: it is at 2 detectable_tv, or the largest possible perturbation. At 2 detectable_tv it is at
    # least detectable_tv away after pooling, so it fails with probability at most miss / 2.
    level = stage_level(false_alarm, minimum_expected)
    detectable = detectable_total_variation(law, samples, level, miss / 2, minimum_expected)
    first_seed, second_seed, control_seed = stage_seeds(seed)
    first = goodness_of_fit(sampled_counts(sampler, samples, first_seed), law, minimum_expected)
    second = None
    if rejects(first, level) and not first.unsupported:
        more = confirmation_factor * samples
        # The threshold grows with the samples: the partition, minimum_expected / samples, stays the same.
        second = goodness_of_fit(
            sampled_counts(sampler, more, second_seed), law, confirmation_factor * minimum_expected
        )
    control_law = perturbed(law, min(2 * detectable, largest_perturbation(law)))
    control = goodness_of_fit(multinomial_counts(control_law, samples, control_seed), law, minimum_expected)
    seen = rejects(control, level)
    return ConfirmedFit(
        verdict=fit_verdict(first, second, level, able=seen and detectable < 1),
        first=first,
        second=second,
        false_alarm=false_alarm,
        level=level,
        detectable_tv=detectable,
        miss=miss,
        control=seen,
    )


def stage_level(false_alarm: float, minimum_expected: float = 10.0) -> float:
    """Return the nominal level of each of the two stages.

    At this level a stage rejects a correct sampler with probability at most ``sqrt(false_alarm)``. The level is
    computed for the hardest laws known; no theorem shows that there are no harder ones (see
    ``specverify.statistics.calibration``). ``minimum_expected`` is the smallest expected count of a cell. To plan the
    number of samples of a stage, use this level and half of the miss probability of the whole test.
    """
    check_probability(false_alarm, "false_alarm")
    return calibrated_level(math.sqrt(false_alarm), minimum_expected)


def stage_seeds(seed: int) -> tuple[int, int, int]:
    """Return independent seeds, below 2**63, for the first stage, the second stage and the negative control."""
    check_seed(seed, "seed")
    first, second, control = (
        int(s.generate_state(1, np.uint64)[0]) >> 1 for s in np.random.SeedSequence(seed).spawn(3)
    )
    return first, second, control


def rejects(fit: GoodnessOfFit, level: float) -> bool:
    """Return whether ``fit`` rejects the law at ``level``."""
    return fit.p_value <= level


def fit_verdict(first: GoodnessOfFit, second: GoodnessOfFit | None, level: float, *, able: bool) -> FitVerdict:
    """Return the verdict of the two stages.

    Args:
        first: Result of the first stage.
        second: Result of the confirmation; None if the first stage did not reject.
        level: Level at which a stage rejects.
        able: Whether the negative control was rejected, and the detectable total variation is below 1.

    Returns:
        REFUTED if the first stage observed an outcome of probability 0, or the confirmation rejects. Otherwise FITS if
        the test is ``able``, and UNKNOWN if it is not.
    """
    if first.unsupported or (second is not None and rejects(second, level)):
        return FitVerdict.REFUTED
    return FitVerdict.FITS if able else FitVerdict.UNKNOWN


def sampled_counts(sampler: Sampler, samples: int, seed: int) -> Counts:
    """Return the counts of ``samples`` samples of the sampler with the seed ``seed``.

    Raises ``ValueError`` unless the counts sum to ``samples``.
    """
    counts = sampler(samples, seed)
    returned = sum(observed_counts(counts).values())
    if returned != samples:
        raise ValueError(f"the sampler returned {returned} samples for seed {seed}, expected {samples}")
    return counts


def multinomial_counts(law: Probabilities, samples: int, seed: int) -> Counts:
    """Return the counts of ``samples`` independent samples of ``law``: a sampler that is correct by construction.

    ``seed`` is the seed of the samples.
    """
    masses = np.array(list(law.values()), dtype=np.float64)
    counts = np.random.default_rng(seed).multinomial(samples, masses / masses.sum())
    return {outcome: int(count) for outcome, count in zip(law, counts, strict=True)}
