"""The calibrated level: the exact size on few and on many cells."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, chi2, poisson

from specverify.statistics import (
    calibrated_level,
    goodness_of_fit,
)


@pytest.mark.parametrize(
    ("samples", "rare"), [(20, 0.5), (25, 0.5), (30, 0.45), (105, 0.1), (552, 0.02), (1032, 0.01), (3467, 0.003)]
)
def test_the_exact_size_on_two_cells_is_within_the_documented_factor(samples, rare):
    law = {"rare": rare, "rest": 1 - rare}
    hits = np.arange(samples + 1)
    masses = binom.pmf(hits, samples, rare)
    likely = hits[masses > 1e-18]
    values = np.array([goodness_of_fit({"rare": k, "rest": samples - k}, law).p_value for k in likely])
    for level, factor in ((1e-2, 1.5), (1e-3, 2.5), (1e-4, 5.3), (1e-5, 12.4), (1e-6, 29)):
        assert masses[likely][values <= level].sum() <= factor * level
    for level, excess in ((1e-1, 1.16), (1e-2, 1.05), (1e-3, 1), (1e-4, 1), (1e-5, 1), (1e-6, 1)):
        assert masses[likely][values <= calibrated_level(level)].sum() <= excess * level


@pytest.mark.parametrize("rare_cells", [1, 2, 5, 20, 100])
@pytest.mark.parametrize("expected", [10, 11, 40])
def test_the_exact_size_with_many_cells_at_the_threshold_is_within_the_calibrated_level(rare_cells, expected):
    # One heavy cell and independent Poisson counts: 'expected' times the statistic is a sum of squared integers.
    minimum_expected = 40 if expected == 40 else 10
    length = 2 ** math.ceil(math.log2(2 * expected * chi2.isf(1e-9, rare_cells) + 5000))
    counts = np.arange(expected + math.isqrt(length) + 1)
    single = np.zeros(length)
    squares = (counts - expected) ** 2
    np.add.at(single, squares[squares < length], poisson.pmf(counts, expected)[squares < length])
    sum_of_squares = np.fft.irfft(np.fft.rfft(single, 2 * length) ** rare_cells, 2 * length)
    for level in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
        critical = chi2.isf(calibrated_level(level, minimum_expected), rare_cells)
        assert sum_of_squares[math.ceil(expected * critical) :].sum() <= level


def test_the_calibrated_level_is_lower_and_approaches_the_level_asked_for():
    levels = [calibrated_level(1e-3, expected) for expected in (5, 10, 20, 40, 100, 1000, 10_000)]
    assert levels == sorted(levels)
    assert levels[0] < 1e-3 / 5
    assert 0.9e-3 < levels[-1] <= 1e-3
