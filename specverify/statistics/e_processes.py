"""Anytime-valid evidence against a law: e-processes for counts, in logarithms, evaluated after every batch.

An e-value is a nonnegative statistic whose mean is at most 1 under the null. A process of e-values that is a martingale
under the null *ever* reaches 1/alarm with probability at most ``alarm`` (Ville 1939): the test may stop or continue at
any time with the declared false-alarm rate. The mean of several e-values on the same samples is an e-value; those of
independent samples (shards, machines) multiply, so their logarithms add.

*A known law.* The null is p on its reachable outcomes. The alternative is a mixture of all laws around it, Dirichlet
with parameters ``c p``. The ratio of the two likelihoods of counts x, n in all, is

    G(c) / G(c + n) * product over i of G(c p_i + x_i) / (G(c p_i) p_i^x_i),    G the gamma function,

a martingale under p (Good 1967; Lindon and Malek, "Anytime-valid inference for multinomial count data", arXiv
2011.03567). A concentration c finds deviations of about ``1/sqrt(c)`` fastest, so the mean over several is used.
Outcomes that did not occur contribute nothing: a large vocabulary costs as much as its observed part. An outcome of
probability zero is infinite evidence: no right sampler emits it.

If the sampler computes in floating point, its p' may have any ratio ``p'_i / p_i`` up to ``1 + rounding``; its
likelihood of n samples is then at most ``(1 + rounding)^n`` times that of p, and dividing by that keeps the guarantee
for every such p'.

*Power.* For n samples with Pearson statistic X on k cells, ``2 log e`` is nearly ``X n / (n + c) - (k - 1) log(1 + n /
c)``, by Stirling's formula. X is noncentral chi-square with a noncentrality of at least ``4 n TV^2`` (see
``planning``). ``anytime_detectable_tv`` solves this relation for TV.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from specverify.base.arguments import argument_error, check_count, check_probability, check_rounding
from specverify.statistics.planning import noncentrality_beyond

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

CONCENTRATIONS: Final = (50.0, 500.0, 5e3, 5e4, 5e5)
"""Concentrations of the Dirichlet mixture; they suit deviations from about 0.1 down to 0.001."""


def log_e_value(
    counts: Any, masses: Any, concentrations: Sequence[float] = CONCENTRATIONS, rounding: float = 0.0
) -> Any:
    """Return the logarithm of the e-value of ``counts`` against the law ``masses``.

    Args:
        counts: Counts ``[..., k]``; leading axes hold separate samples.
        masses: Probabilities ``[k]``. Outcomes that no sample has may be left out of both, so their sum need not be 1.
        concentrations: Concentrations c of the Dirichlet alternatives that are averaged (see the module).
        rounding: Largest relative error of the sampler's probabilities that is not evidence.

    Returns:
        float64 ``[...]``; ``inf`` where an outcome of probability zero was seen. Below 1e10 samples the error is 1e-3.

    Raises:
        ValueError: For shapes that differ, negative counts or negative masses.
    """
    from scipy.special import gammaln  # noqa: PLC0415 - half a second, and only where something is sampled

    seen, law = np.asarray(counts, dtype=np.float64), np.asarray(masses, dtype=np.float64)
    if law.ndim != 1 or seen.ndim < 1 or seen.shape[-1] != law.shape[0]:
        raise ValueError(f"counts have shape {seen.shape} and masses {law.shape}, expected [..., k] and [k]")
    if not (seen >= 0).all() or not ((law >= 0) & (law <= 1 + 1e-9)).all():
        raise ValueError("counts or masses are negative or no numbers, expected counts >= 0 and probabilities")
    check_rounding(rounding, "rounding")
    reachable = law > 0
    total, some, known = seen.sum(axis=-1), seen[..., reachable], law[reachable]
    likelihood = (some * np.log(known)).sum(axis=-1) + total * math.log1p(rounding)
    mixtures = [
        gammaln(c) - gammaln(c + total) + (gammaln(c * known + some) - gammaln(c * known)).sum(axis=-1) - likelihood
        for c in map(float, concentrations)
    ]
    result = log_mean(mixtures)
    return np.where(seen[..., ~reachable].any(axis=-1), np.inf, result)


def log_mean(logarithms: Sequence[Any]) -> Any:
    """Return the logarithm of the mean of ``m`` e-values on the same samples, given their logarithms ``[m, ...]``."""
    if len(logarithms) == 0:
        raise argument_error("logarithms", logarithms, "at least one")
    return np.logaddexp.reduce(np.asarray(logarithms, dtype=np.float64), axis=0) - math.log(len(logarithms))


def log_product(logarithms: Sequence[float]) -> float:
    """Return the logarithm of the product of e-values of *independent* samples.

    ``logarithms`` are those of the e-values.
    """
    return math.fsum(logarithms)


def anytime_detectable_tv(
    samples: int,
    cells: int,
    alarm: float,
    miss: float,
    concentrations: Sequence[float] = CONCENTRATIONS,
    tests: int = 1,
    rounding: float = 0.0,
) -> float:
    """Return the smallest total variation that ``samples`` samples refute with probability ``1 - miss``.

    Args:
        samples: Number of samples.
        cells: Number of outcomes of the law.
        alarm: False-alarm probability.
        miss: Probability of a miss.
        concentrations: Concentrations of the Dirichlet priors that are mixed in the e-process.
        tests: Number of e-processes whose e-values are averaged, this one included.
        rounding: Relative error of probabilities that is not evidence.

    Returns:
        An asymptotic value, good if every cell has an expected count of at least ten. 1.0 means that no deviation is
        sure to be detected.

    Raises:
        ValueError: For counts below 1 and probabilities outside (0, 1).
    """
    check_count(samples, "samples")
    check_count(cells, "cells")
    check_count(tests, "tests")
    check_probability(alarm, "alarm")
    check_probability(miss, "miss")
    if cells == 1:
        return 1.0
    freedom, needed = cells - 1, math.log(tests * len(concentrations) / alarm) + samples * math.log1p(rounding)
    critical = min(
        (2 * needed + freedom * math.log1p(samples / c)) * (samples + c) / samples for c in map(float, concentrations)
    )
    return min(1.0, math.sqrt(noncentrality_beyond(critical, freedom, miss) / (4 * samples)))
