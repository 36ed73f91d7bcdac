"""Whole runs of right samplers, stopped by themselves as soon as anything is decided: how often they are accused."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.run.sequential_samples import SamplingPlan, sampled_verdicts
from specverify.subjects.sampler import Sampler
from test_support.statistics.statistical import at_most

LAWS = {"uniform": np.full(4, 0.25), "peaked": np.array([0.7, 0.2, 0.06, 0.04])}


def refuted(masses, law, plan, run):
    """Judge one sampler of ``masses`` by ``law``; return the checks that accuse it, and after how many samples."""

    def sample(seed, n):
        return np.random.default_rng([run, seed]).choice(len(masses), n, p=masses)

    verdicts = sampled_verdicts(Sampler("it", sample), plan, law=law)
    samples = next(verdict.figures["samples"] for verdict in verdicts if verdict.check == "samples_fit_law")
    return {verdict.check for verdict in verdicts if verdict.status is Status.REFUTED}, samples


def accused(runs, plan):
    """Return how many right samplers are accused, and after how many samples each run ended."""
    found = [refuted(law, law, plan, [name, run]) for run in range(runs // 2) for name, law in enumerate(LAWS.values())]
    return sum(bool(checks) for checks, _ in found), {samples for _, samples in found}


def test_right_samplers_are_accused_no_more_often_than_declared():
    plan = SamplingPlan(tv=0.3, alarm=0.05, most_samples=512)
    number, ended = accused(60, plan)
    assert at_most(number, 60, plan.alarm)
    assert len(ended) > 1


@pytest.mark.thorough
def test_ten_thousand_right_samplers_are_accused_no_more_often_than_declared():
    plan = SamplingPlan(tv=0.3, alarm=0.05, most_samples=512)
    number, ended = accused(10_000, plan)
    print(f"{number} of 10000 were accused, declared {plan.alarm}; they ended after {sorted(ended)}")  # noqa: T201
    assert at_most(number, 10_000, plan.alarm)
    assert len(ended) > 1


@pytest.mark.parametrize(("most", "status"), [(256, Status.UNKNOWN), (512, Status.REFUTED)])
def test_a_law_is_refuted_only_after_enough_calls(most, status):
    def sample(seed, n):
        return np.random.default_rng(seed).choice(4, n, p=LAWS["peaked"])

    verdicts = sampled_verdicts(Sampler("it", sample), SamplingPlan(most_samples=most), law=LAWS["uniform"])
    fit = next(verdict for verdict in verdicts if verdict.check == "samples_fit_law")
    assert fit.status is status
    assert ("most_samples" in fit.statement) == (status is Status.UNKNOWN)


@pytest.mark.parametrize("period", [10, 16, 64])
def test_rows_that_repeat_refute_independence_and_not_the_law(period):
    """Chunks of one call are seeded alike, whatever their length is."""

    def sample(seed, n):
        chunk = np.random.default_rng(seed).choice(4, period, p=LAWS["peaked"])
        return np.resize(chunk, n)

    verdicts = sampled_verdicts(Sampler("it", sample), SamplingPlan(), law=LAWS["peaked"])
    named = {verdict.check: verdict for verdict in verdicts}
    assert named["samples_fit_law"].status is Status.UNKNOWN
    rows = named["rows_are_independent"]
    assert rows.status is Status.REFUTED
    assert rows.statement.startswith(f"rows of one call that are {period} apart are dependent: ")
