"""Planned statistics: what samples can decide about a law, how surely, and how many of them it takes."""

from __future__ import annotations

from specverify.statistics.alarm_budget import AlarmBudget, divide_alarm
from specverify.statistics.calibration import calibrated_level
from specverify.statistics.certificate import tv_certificate
from specverify.statistics.confirmation import ConfirmedFit, FitVerdict, Sampler, confirmed_fit, stage_level
from specverify.statistics.goodness_of_fit import (
    GoodnessOfFit,
    detectable_total_variation,
    goodness_of_fit,
    samples_for,
)
from specverify.statistics.perturbation import largest_perturbation, perturbed
from specverify.statistics.planning import detectable_tv, noncentrality_needed, samples_needed
from specverify.statistics.pooling import Partition, partition
from specverify.statistics.two_samples import Agreement, TwoSamples, agreement, two_samples

__all__ = [
    "Agreement",
    "AlarmBudget",
    "ConfirmedFit",
    "FitVerdict",
    "GoodnessOfFit",
    "Partition",
    "Sampler",
    "TwoSamples",
    "agreement",
    "calibrated_level",
    "confirmed_fit",
    "detectable_total_variation",
    "detectable_tv",
    "divide_alarm",
    "goodness_of_fit",
    "largest_perturbation",
    "noncentrality_needed",
    "partition",
    "perturbed",
    "samples_for",
    "samples_needed",
    "stage_level",
    "tv_certificate",
    "two_samples",
]
