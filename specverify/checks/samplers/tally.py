"""Observed and expected counts of outcomes: the largest deviations, in words and as a figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from specverify.statistics.e_processes import Array

TOLD = 3
"""Outcomes that a counterexample names."""
SHOWN = 12
"""Outcomes of a figure: so many that are off most, and as many that are likeliest."""


class Tally(NamedTuple):
    """Counts of ``k`` outcomes from equally many samples on either side."""

    name: Callable[[int], object]
    seen: Array
    """``[k]``."""
    expected: Array
    """``[k]``, counts: of a law times the samples, or of a reference."""
    variance: Array
    """``[k]``, nearly that of the difference between the two."""
    samples: int
    beside: str
    """What stands beside a count, such as ``the law expects {:.1f}``."""
    sampled: bool = False
    """Whether what is expected was itself sampled."""


def farthest(tally: Tally, number: int = TOLD) -> list[int]:
    """Return the outcomes with the largest deviations, in standard deviations."""
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.nan_to_num((tally.seen - tally.expected) / np.sqrt(tally.variance))
    return [int(place) for place in np.argsort(-np.abs(off), kind="stable")[:number]]


def farthest_told(tally: Tally) -> tuple[str, ...]:
    """Describe the counts of the outcomes with the largest deviations."""
    return tuple(
        f"{tally.name(i)} came {tally.seen[i]:.0f} times, {tally.beside.format(tally.expected[i])}"
        for i in farthest(tally)
    )


def tally_figure(tally: Tally) -> Mapping[str, Any]:
    """Return the table of a report: largest deviations and likeliest outcomes, with expected shares and counts.

    ``cells`` is the total number of outcomes, ``sampled`` states whether the expectation was sampled too.
    """
    likeliest = np.argsort(-tally.expected, kind="stable")[:SHOWN].tolist()
    chosen = sorted({*farthest(tally, SHOWN), *likeliest}, key=lambda i: (-tally.expected[i], i))
    return {
        "samples": tally.samples,
        "cells": len(tally.seen),
        "sampled": tally.sampled,
        "shown": [[str(tally.name(i)), float(tally.expected[i] / tally.samples), int(tally.seen[i])] for i in chosen],
    }
