"""Measure the false-alarm rate and the power of a user's own test of a sampler.

A threshold chosen by feel has an unknown false-alarm rate, and misses errors below an unknown size. ``calibrate``
measures both: it runs the test on samples of the law that the test expects, and on samples of laws at a growing total
variation from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from specverify.base.arguments import (
    argument_error,
    check_callable,
    check_choice,
    check_count,
    check_flag,
    check_number,
    check_probability,
    check_seed,
)
from specverify.laws.known_law import known_law
from specverify.statistics.e_processes import Array
from specverify.statistics.perturbation import largest_perturbation, perturbed

CONFIDENCE: Final = 0.99
STEPS: Final = 10
"""Number of bisection steps between a detected and an undetected error: the result is exact to a thousandth of the
largest."""
Takes = Literal["samples", "counts"]


class ErrorDetection(NamedTuple):
    """How large an error of one kind must be before a test notices it.

    ``way`` is the name of the kind, a key of ``most_wrong``. An error is a mixture of the right law and the most wrong
    one of its kind.
    """

    way: str
    largest: float
    """Total variation of the largest error of this kind."""
    accepted: float
    """Largest total variation at which nine of ten runs pass; 0 if fewer pass even on the correct law."""
    refuted: float | None
    """Smallest total variation at which nine of ten runs alarm; None if fewer alarm even at the largest error."""


class Calibration(NamedTuple):
    """The measured false-alarm rate and power of a test, for one law and one number of samples (``samples``).

    ``runs`` right samples were tested. ``low`` and ``high`` are the ends of the interval of the false-alarm rate, and
    ``declared`` is the rate that the author of the test states. ``seen`` states how large
    each kind of error must be before the test detects it.
    """

    samples: int
    runs: int
    alarms: int
    """Number of alarms in the runs on a correct sampler."""
    low: float
    """Lower end of the exact 99 percent interval of the false-alarm rate (Clopper and Pearson 1934)."""
    high: float
    declared: float | None
    seen: tuple[ErrorDetection, ...]

    @property
    def rate(self) -> float:
        """Return the measured false-alarm rate: alarms on right samples, divided by runs."""
        return self.alarms / self.runs

    @property
    def as_declared(self) -> bool | None:
        """Return whether the measured false-alarm rate is compatible with the declared rate.

        None if no rate was declared.
        """
        return None if self.declared is None else self.low <= self.declared

    def __str__(self) -> str:
        """Return the calibration as a few lines of text."""
        said = {None: "", True: f", declared {self.declared}", False: f", NOT the declared {self.declared}"}
        interval = f"99 % interval {self.low:.2g} to {self.high:.2g}"
        lines = [
            f"{self.samples} samples: false alarms {self.rate:.3g} ({self.alarms} of {self.runs}, {interval})"
            + said[self.as_declared]
        ]
        for item in self.seen:
            far = "even at its end it passes" if item.refuted is None else f"refuted from TV {item.refuted:.3g} on"
            lines.append(f"{item.way}: passes up to TV {item.accepted:.3g}, {far} (nine runs of ten)")
        return "\n".join(lines)


def calibrate(
    statistic: Callable[..., Any],
    law: Any,
    *,
    samples: int,
    threshold: float | None = None,
    takes: Takes = "samples",
    two_samples: bool = False,
    declared: float | None = None,
    runs: int = 1000,
    runs_of_wrong: int = 20,
    seed: int = 0,
) -> Calibration:
    """Return the false-alarm rate of a test and the total variation that the test detects.

    The false alarms of right samples are counted. Then the smallest detected error is searched by bisection for two
    kinds of wrong laws. In the first, half of the outcomes are too likely; no error is harder to detect. In the second,
    a share of the outcomes is uniformly random.

    Args:
        statistic: ``statistic(sample)`` gets outcomes as their numbers: int64 ``[samples]`` in random order, or with
            ``takes="counts"`` the number of times that each occurs, ``[k]``. It alarms if its result is above
            ``threshold``; without a threshold, if it raises ``AssertionError`` or returns False.
        law: The right law of the outcomes: a pmf ``[k]``, or a mapping from sequences to probabilities.
        samples: Number of outcomes in one sample.
        threshold: The largest result that is no alarm.
        takes: ``"samples"`` or ``"counts"``.
        two_samples: Whether the statistic gets a second, right sample of the same size to compare with.
        declared: The false-alarm rate that the author of the test states.
        runs: Number of right samples whose false alarms are counted.
        runs_of_wrong: Number of samples of each wrong law, at least 10.
        seed: Seed of all samples.

    Returns:
        The false-alarm rate with its 99 percent interval, and the total variations that pass and that are refuted.

    Raises:
        ValueError: For invalid arguments. Errors of ``statistic`` other than ``AssertionError`` are not caught.

    Examples:
        >>> def my_test(sample):
        ...     return abs(sample.mean() - 0.75) < 0.1
        >>> result = calibrate(my_test, [0.25, 0.75], samples=100, runs=20, runs_of_wrong=10)
        >>> 0 <= result.alarms <= 20
        True
    """
    check_callable(statistic, "statistic", arguments=1 + bool(two_samples))
    check_count(samples, "samples")
    check_choice(takes, "takes", ("samples", "counts"))
    check_flag(two_samples, "two_samples")
    if threshold is not None:
        check_number(threshold, "threshold", "a number", lambda value: value == value)  # noqa: PLR0124 - not NaN
    if declared is not None:
        check_probability(declared, "declared")
    check_count(runs, "runs")
    check_count(runs_of_wrong, "runs_of_wrong", least=10)
    check_seed(seed)
    masses, rng = known_law(law).masses, np.random.default_rng(seed)

    def alarms(wrong: Array) -> bool:
        given = [_sample(rng, pmf, samples, takes) for pmf in ([wrong, masses] if two_samples else [wrong])]
        try:
            result = statistic(*given)
        except AssertionError:
            return True
        return _alarms(result, threshold)

    counted = sum(alarms(masses) for _ in range(runs))
    low, high = _interval(counted, runs)
    seen = tuple(
        _seen(way, masses, wrong, lambda pmf: sum(alarms(pmf) for _ in range(runs_of_wrong)) / runs_of_wrong)
        for way, wrong in most_wrong(masses).items()
    )
    return Calibration(samples, runs, counted, low, high, declared, seen)


def _alarms(found: Any, threshold: float | None) -> bool:
    """Return whether a user's test alarms; ``found`` is the value that the test returned.

    It alarms if the value is above ``threshold``, or, without a threshold, if it is False. Raises ``ValueError`` for a
    value that is not a number, or without a threshold for one other than True, False and None.
    """
    value = found.item() if getattr(found, "shape", None) == () else found
    if threshold is not None:
        check_number(value, "what the statistic returned", "a number, to compare with the threshold", lambda _: True)
        return bool(value > threshold)
    if value is None or isinstance(value, bool):
        return value is False
    raise argument_error("what the statistic returned", found, "True, False or None, or a threshold for a number")


def most_wrong(masses: Array) -> Mapping[str, Array]:
    """Return the most wrong pmf of each kind of error, as a mapping from the name of the kind to the pmf.

    ``masses`` is the right pmf. The kinds are:

    * "half of the outcomes too likely": probability is moved to half of the outcomes; left out if only one is possible.
    * "uniform garbage": the uniform pmf; left out if it is right.
    """
    law, uniform = {i: float(mass) for i, mass in enumerate(masses)}, np.full(len(masses), 1 / len(masses))
    garbage = {} if np.allclose(masses, uniform, rtol=1e-9, atol=0) else {"uniform garbage": uniform}
    if (masses > 0).sum() == 1:
        return garbage
    moved = perturbed(law, min(largest_perturbation(law), 0.5))
    half = np.array([moved.get(i, 0.0) for i in range(len(masses))])
    return {"half of the outcomes too likely": half} | garbage


def _seen(way: str, right: Array, wrong: Array, alarmed: Callable[[Array], float]) -> ErrorDetection:
    largest = float(np.abs(wrong - right).sum() / 2)
    at = lru_cache(maxsize=None)(lambda share: alarmed((1 - share) * right + share * wrong))
    passes, refuted = _edge(lambda share: at(share) <= 0.1), _edge(lambda share: at(share) < 0.9)
    return ErrorDetection(way, largest, largest * passes[0], None if refuted[1] is None else largest * refuted[1])


def _edge(below: Callable[[float], bool]) -> tuple[float, float | None]:
    """Find by bisection on [0, 1] where ``below(share)`` changes from True to False.

    Returns the largest share tried at which it is True, and the smallest tried at which it is False (None if
    ``below(1.0)`` is True).
    """
    if below(1.0):
        return 1.0, None
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return low, high


def _sample(rng: np.random.Generator, masses: Array, samples: int, takes: Takes) -> Array:
    counts = rng.multinomial(samples, masses / masses.sum())
    if takes == "counts":
        return counts
    drawn = np.repeat(np.arange(len(masses)), counts)
    rng.shuffle(drawn)
    return drawn


def _interval(successes: int, trials: int) -> Sequence[float]:
    from scipy.stats import binomtest  # noqa: PLC0415 - half a second, and only where something is sampled

    result = binomtest(successes, trials).proportion_ci(CONFIDENCE, method="exact")
    return float(result.low), float(result.high)
