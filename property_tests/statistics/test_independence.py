"""Planned tests of contingency tables: their level, their power, and what they do not decide."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from specverify.statistics import FitVerdict
from specverify.statistics.independence import contingency, independences, samples_of_tables


def tables_of(law):
    """A sampler of one table of this law."""

    def sample(samples, seed):
        law_ = np.asarray(law, dtype=float)
        return {"it": np.random.default_rng(seed).multinomial(samples, law_.ravel()).reshape(law_.shape)}

    return sample


def dependent(tv):
    """Two fair bits at this total variation from independence."""
    return [[0.25 + tv / 2, 0.25 - tv / 2], [0.25 - tv / 2, 0.25 + tv / 2]]


def judged(law, samples, **options):
    options = {"false_alarm": 1e-6, "miss": 1e-3, "seed": 0, **options}
    return independences(tables_of(law), samples=samples, **options)["it"]


def test_the_statistic_is_scipys():
    table = np.array([[10, 20, 30], [25, 15, 20]])
    found = contingency(table)
    expected = chi2_contingency(table, correction=False)
    assert found.p_value == pytest.approx(expected.pvalue)
    assert (found.freedom, found.fewest) == (2, expected.expected_freq.min())
    assert contingency([[0, 3, 4], [0, 0, 0], [0, 5, 6]]).freedom == 1


def test_a_thing_that_never_varies_decides_nothing():
    assert contingency([[5, 7], [0, 0]]).p_value == 1.0
    assert judged([[0.5, 0.5], [0, 0]], 1000).verdict is FitVerdict.UNKNOWN
    assert judged([[0.999, 0.0005], [0.0005, 0]], 1000).verdict is FitVerdict.UNKNOWN


@pytest.mark.parametrize("tv", [0.02, 0.05, 0.2])
def test_what_is_planned_is_seen_and_independence_is_not_accused(tv):
    samples = samples_of_tables(tv, 1, 1e-6, 1e-3)
    for seed in range(50):
        right = judged(dependent(0), samples, seed=seed)
        assert right.verdict is FitVerdict.FITS
        assert right.detectable_tv <= tv
        assert judged(dependent(tv), samples, seed=seed).verdict is FitVerdict.REFUTED


def test_the_level_of_one_stage_is_the_declared_one():
    rng = np.random.default_rng(1)
    values = [contingency(rng.multinomial(400, np.full(6, 1 / 6)).reshape(2, 3)).p_value for _ in range(20_000)]
    for level in (0.1, 0.01):
        assert np.mean(np.array(values) <= level) == pytest.approx(level, rel=0.2)


def test_too_few_samples_are_unknown():
    assert judged(dependent(0), 60).verdict is FitVerdict.UNKNOWN
