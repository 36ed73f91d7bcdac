"""Confidence sequences: intervals that are valid at all times simultaneously, so that a test may stop at any time.

Both kinds use Ville's inequality (1939): a nonnegative supermartingale that begins at 1 ever reaches 1/error with
probability at most ``error``. Two supermartingales are used.

*Sums of bounded numbers.* Let S be a sum of independent centred numbers that are sub-Gaussian with total variance v.
Then ``exp(x S - x^2 v / 2)`` is a supermartingale for every x. Mixed over the half x > 0 of a normal law with variance
1/rho, it equals, at S = s, ``2 sqrt(rho / (v + rho)) exp(s^2 / (2 (v + rho))) Phi(s / sqrt(v + rho))``. Since ``Phi(z)
>= 1 - exp(-z^2 / 2)`` for z >= 0, it has reached 1/error wherever s is at least

    sqrt(2 (v + rho) log(1 + sqrt((v + rho) / rho) / (2 error))),

so S stays below that at all times with probability at least ``1 - error`` (Howard, Ramdas, McAuliffe and Sekhon,
"Time-uniform, nonparametric, nonasymptotic confidence sequences", arXiv 1810.08240, proposition 6 and its closed form).
An indicator has v = 1/4 (Hoeffding 1963). rho only determines the number of samples at which the bound is tightest.

*Coins.* With s heads in n, the mixture of likelihoods under Beta(1/2, 1/2) divided by the likelihood at the true rate r
is a martingale that begins at 1. The rates at which it is below 1/error form an interval, and r is ever outside it with
probability at most ``error`` (Robbins 1970; Lindon and Malek, arXiv 2011.03567, for the multinomial).
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from specverify.base.arguments import check_count, check_number, check_positive, check_probability

ONE_SAMPLE: Final = 0.25
"""Largest variance of the indicator of a set."""
TWO_SAMPLES: Final = 0.5
"""Largest variance of the difference of two independent indicators."""


class Interval(NamedTuple):
    """The lower and upper end of a confidence interval. Each side has its own error probability."""

    lower: float
    upper: float


def crossing(variance: float, tight_at: float, log_error: float) -> float:
    """Return the bound on a growing sum of sub-Gaussian numbers, at the time when its total variance is ``variance``.

    The probability that the sum is above its bound at any time is at most ``exp(log_error)``. ``tight_at`` is the
    variance at which the bound is nearly the smallest possible.
    """
    surprise = -2 * log_error
    rho = tight_at / (surprise + math.log1p(surprise))
    spread = variance + rho
    above = 0.5 * math.log(spread / rho) - math.log(2) - log_error
    return math.sqrt(2 * spread * (above + math.log1p(math.exp(-above)) if above > 0 else math.log1p(math.exp(above))))


def tv_sequence(
    tv_observed: float, samples: int, cells: int, error: float, *, tight_at: int, variance: float = ONE_SAMPLE
) -> Interval:
    """Return bounds on the total variation between the sampled law and the given one, valid at all times.

    Args:
        tv_observed: Total variation between the empirical law and the given one.
        samples: Number of samples.
        cells: Number of cells on which ``tv_observed`` is computed.
        error: Bound on the probability that the upper bound is ever wrong, and the same for the lower bound.
        tight_at: Number of samples at which the upper bound is tightest, fixed before the first sample.
        variance: ``TWO_SAMPLES`` if ``tv_observed`` is that between two samplers, of ``samples`` samples each.

    Raises:
        ValueError: For counts below 1, an ``error`` outside (0, 1), or a ``tv_observed`` outside [0, 1].
    """
    check_count(samples, "samples")
    check_count(cells, "cells")
    check_count(tight_at, "tight_at")
    check_probability(error, "error")
    check_positive(variance, "variance", "squares")
    check_number(tv_observed, "tv_observed", "a total variation between 0 and 1", lambda value: 0 <= value <= 1)
    # Proof. Write p' for the sampled law, p for the given one, and e for the empirical law after n samples. Let A be
    # the set where p' > p, so that TV(p', p) = p'(A) - p(A). Since e(A) - p(A) <= TV(e, p),
    #     TV(p', p) <= TV(e, p) + (p'(A) - e(A)) <= TV(e, p) + crossing(n / 4) / n
    # for all n at once with probability at least 1 - error. A is one set that does not depend on the samples, so the
    # number of cells does not enter. The lower bound uses TV(p', p) >= TV(e, p) - max over sets B of (e(B) - p'(B)).
    # There are 2^cells sets B, and each gets an equal part of ``error``. For two samplers, the difference of their
    # empirical laws takes the place of e - p.
    one_set = math.log(error)
    above = crossing(variance * samples, variance * tight_at, one_set) / samples
    below = crossing(variance * samples, variance * tight_at, one_set - cells * math.log(2)) / samples
    return Interval(max(0.0, tv_observed - below), min(1.0, tv_observed + above))


def rate_sequence(successes: int, trials: int, error: float) -> Interval:
    """Return an interval that contains a rate, such as the acceptance rate of drafts, at all times.

    It is computed from ``successes`` among ``trials`` independent trials. The probability that the rate is ever outside
    is at most ``error``. Raises ``ValueError`` for impossible counts, or an error outside (0, 1).
    """
    check_count(trials, "trials", least=0)
    check_count(successes, "successes", least=0, most=trials)
    check_probability(error, "error")
    share = successes / trials if trials else 0.5
    return Interval(
        _end(successes, trials, error, inside=share, outside=0.0),
        _end(successes, trials, error, inside=share, outside=1.0),
    )


def log_rate_evidence(successes: int, trials: int, rate: float) -> float:
    """Return the logarithm of the e-value against the claim that a rate is ``rate``.

    There were ``successes`` successes in ``trials`` trials. The module defines the e-value.
    """
    from scipy.special import betaln  # noqa: PLC0415 - half a second, and only where something is sampled

    failures = trials - successes
    if (successes and rate <= 0) or (failures and rate >= 1):
        return math.inf
    likelihood = (successes * math.log(rate) if successes else 0.0) + (
        failures * math.log1p(-rate) if failures else 0.0
    )
    return float(betaln(successes + 0.5, failures + 0.5) - betaln(0.5, 0.5)) - likelihood


def _end(successes: int, trials: int, error: float, *, inside: float, outside: float) -> float:
    """Return one end of the interval of a rate: the rate at which the evidence against it reaches ``1/error``.

    There were ``successes`` successes in ``trials`` trials. The search runs from ``inside``, the observed share, to
    ``outside``, 0 or 1, and returns ``outside`` if no rate has so much evidence against it.
    """
    if log_rate_evidence(successes, trials, outside) < -math.log(error):
        return outside
    while abs(outside - inside) > 1e-12:
        middle = (inside + outside) / 2
        if log_rate_evidence(successes, trials, middle) < -math.log(error):
            inside = middle
        else:
            outside = middle
    return outside
