"""Samples of a black box against a law: the power is the one that the closed form gives."""

from __future__ import annotations

import numpy as np
import pytest

from property_tests.run.test_sequential_samples import refuted
from specverify.checks.samplers.sampler_law import MISS
from specverify.run.sequential_samples import SamplingPlan, planned_law
from specverify.statistics import anytime_detectable_tv
from test_support.statistics.statistical import at_least

LAWS = {"uniform": np.full(4, 0.25), "peaked": np.array([0.7, 0.2, 0.06, 0.04])}


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("name", LAWS)
def test_the_detectable_is_refuted_as_often_as_the_closed_form_says(name):
    """At the samples that are all there are: what every outcome by itself shows, sharing its mean with other views."""
    law, samples, alarm = LAWS[name], 4096, 1e-3
    plan = SamplingPlan(tv=0.01, alarm=alarm, most_samples=samples)
    views = planned_law(plan, law)[0].views
    tv = anytime_detectable_tv(samples, len(law), alarm / 3, MISS, tests=len(views), rounding=plan.rounding)
    moved = law + tv * np.array([1, -1, 0, 0]) * (1 if name == "uniform" else -1)
    runs = 30
    found = [refuted(moved, law, plan, [7, run])[0] for run in range(runs)]
    assert at_least(sum("samples_fit_law" in accused for accused in found), runs, 1 - MISS)
    few = [refuted(law + (moved - law) / 8, law, plan, [8, run])[0] for run in range(runs)]
    assert sum("samples_fit_law" in accused for accused in few) < runs / 4
