"""Two tests of samplers used by other projects, written from their descriptions, as input of ``calibrate``."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.reference import softmax
from specverify.statistics.e_processes import Array
from specverify.trust.calibrate import Calibration, calibrate

BINS = 10
PYTORCH_RATE = 1e-3
COSINE = 0.99


def balanced_bins(sample: Array, other: Array) -> float:
    """Return PyTorch's statistic for two samples: the largest imbalance of a bin, divided by PyTorch's threshold.

    Both samples are sorted together and cut into ten bins of equal size. The imbalance of a bin is the absolute mean of
    +1 for each number of ``sample`` and -1 for each of ``other``. PyTorch accepts a result of at most 1, although its
    threshold lacks a factor of ``sqrt(2)``.
    """
    from scipy.special import erfinv  # noqa: PLC0415 - half a second, and only where something is sampled

    values = np.concatenate([sample, other])
    signs = np.repeat([1.0, -1.0], [len(sample), len(other)])
    mixed = np.random.default_rng(int(values[:8].sum())).permutation(len(values))  # ties must not favour one of them
    order = mixed[np.argsort(values[mixed], kind="stable")]
    size = len(values) // BINS
    leaning = signs[order][: size * BINS].reshape(BINS, size).mean(axis=1)
    return float(np.abs(leaning).max() / (size**-0.5 * erfinv(1 - 2 * PYTORCH_RATE / BINS)))


def cosine_of(masses: Array) -> Any:
    """Return FlashInfer's test of token counts against the pmf ``masses``, as a function ``counts -> bool``.

    The test passes if the cosine of counts and pmf exceeds 0.99 and no token of probability zero was drawn.
    """

    def passes(counts: Array) -> bool:
        cosine = counts @ masses / (np.linalg.norm(counts) * np.linalg.norm(masses))
        return bool(cosine > COSINE and not counts[masses == 0].any())

    return passes


def pytorch_two_samples(runs: int = 2000, seed: int = 0) -> Calibration:
    """Measure the errors of the test by which PyTorch compares two samples, for samples of 10 000 numbers.

    The test is ``balanced_bins``. Its declared false-alarm rate, which PyTorch's threshold is meant to give, is 1e-3.
    The returned ``Calibration`` has the false-alarm rate measured on ``runs`` pairs of samples of a right sampler, and
    how wrong a sampler must be before the test notices. ``seed`` is the seed of all samples.
    """
    law = np.full(5000, 1 / 5000)
    return calibrate(
        balanced_bins,
        law,
        samples=10_000,
        threshold=1.0,
        two_samples=True,
        declared=PYTORCH_RATE,
        runs=runs,
        seed=seed,
    )


def flashinfer_cosine(runs: int = 50, seed: int = 0) -> Calibration:
    """Return the calibration of FlashInfer's comparison of 5 000 000 draws with a law of 32 000 tokens.

    ``runs`` is the number of right samples that are tested, ``seed`` the seed of the law and of all samples.
    """
    masses = softmax(5.0 * np.random.default_rng(seed).standard_normal(32_000))
    return calibrate(
        cosine_of(masses), masses, samples=5_000_000, takes="counts", runs=runs, runs_of_wrong=10, seed=seed
    )
