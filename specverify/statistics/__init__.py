"""Planned statistics: deviations that samples detect, error probabilities, and the number of samples required."""

from __future__ import annotations

from specverify.statistics.alarm_budget import AlarmBudget, divide_alarm
from specverify.statistics.calibration import calibrated_level
from specverify.statistics.confidence_sequences import Interval, rate_sequence, tv_sequence
from specverify.statistics.confirmation import ConfirmedFit, FitVerdict, Sampler, confirmed_fit, stage_level
from specverify.statistics.e_processes import (
    CONCENTRATIONS,
    anytime_detectable_tv,
    log_e_value,
    log_mean,
    log_product,
)
from specverify.statistics.goodness_of_fit import (
    GoodnessOfFit,
    detectable_total_variation,
    goodness_of_fit,
    samples_for,
)
from specverify.statistics.perturbation import largest_perturbation, perturbed
from specverify.statistics.planning import detectable_tv, noncentrality_needed, samples_needed
from specverify.statistics.pooling import Partition, partition
from specverify.statistics.total_variation_bound import tv_certificate
from specverify.statistics.two_samples import Agreement, TwoSamples, agreement, two_samples

__all__ = [
    "CONCENTRATIONS",
    "Agreement",
    "AlarmBudget",
    "ConfirmedFit",
    "FitVerdict",
    "GoodnessOfFit",
    "Interval",
    "Partition",
    "Sampler",
    "TwoSamples",
    "agreement",
    "anytime_detectable_tv",
    "calibrated_level",
    "confirmed_fit",
    "detectable_total_variation",
    "detectable_tv",
    "divide_alarm",
    "goodness_of_fit",
    "largest_perturbation",
    "log_e_value",
    "log_mean",
    "log_product",
    "noncentrality_needed",
    "partition",
    "perturbed",
    "rate_sequence",
    "samples_for",
    "samples_needed",
    "stage_level",
    "tv_certificate",
    "tv_sequence",
    "two_samples",
]
