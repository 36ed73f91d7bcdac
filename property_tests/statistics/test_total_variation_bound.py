"""The certificate of the total variation covers the true distance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from specverify.statistics import (
    tv_certificate,
)
from test_support.statistics.statistical import (
    at_most,
)


@pytest.mark.parametrize("miss", [0.05, 0.3])
@pytest.mark.parametrize(("true", "null"), [([0.6, 0.4], [0.5, 0.5]), ([0.1] * 10, [0.19] + [0.09] * 9)])
def test_the_certificate_covers_the_true_distance(true, null, miss):
    true, null, samples, runs = np.array(true), np.array(null), 100, 5000
    actual = np.abs(true - null).sum() / 2
    counts = np.random.default_rng(5).multinomial(samples, true, size=runs)
    observed = np.abs(counts / samples - null).sum(axis=1) / 2
    violated = sum(tv_certificate(float(value), samples, len(true), miss) < actual for value in observed)
    assert at_most(violated, runs, miss)


def test_the_radius_of_the_certificate_covers_the_empirical_law():
    samples, runs, miss = 50, 5000, 0.5
    hits = np.random.default_rng(6).binomial(samples, 0.5, size=runs)
    beyond = np.abs(hits / samples - 0.5) > tv_certificate(0.0, samples, 2, miss)
    assert at_most(int(beyond.sum()), runs, miss)


def test_the_certificate_is_the_sum_of_its_three_terms():
    assert tv_certificate(0.1, 10_000, 101, 0.01) == pytest.approx(0.1 + 0.05 + 0.0151742712938, rel=1e-10)
    assert tv_certificate(0.9, 10, 1000, 0.01) == 1.0
    assert tv_certificate(0.0, 200, 1, math.exp(-1)) == pytest.approx(0.05, rel=1e-12)
