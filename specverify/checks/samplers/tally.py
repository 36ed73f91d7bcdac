"""Observed and expected counts of outcomes: their largest deviations, in words and as a figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from specverify.statistics.e_processes import Array

TOLD = 3
"""The number of outcomes in a counterexample."""
SHOWN = 12
"""Most outcomes in a figure of those with the largest deviations, and also of the most probable ones."""


class Tally(NamedTuple):
    """Observed and expected counts of ``k`` outcomes, from equally many samples.

    ``name(i)`` returns the name of outcome number i. ``seen``, ``expected`` and ``variance`` are arrays ``[k]``, and
    ``samples`` is the number of samples.
    """

    name: Callable[[int], object]
    seen: Array
    """Observed counts ``[k]``, one for each of the k cells."""
    expected: Array
    """Expected counts ``[k]``: probability times samples, or the counts of a reference."""
    variance: Array
    """Approximate variance ``[k]`` of the difference between observed and expected counts."""
    samples: int
    beside: str
    """The text that follows an observed count, such as ``the law expects {:.1f}``."""
    sampled: bool = False
    """Whether the expected counts were sampled too."""


def farthest(tally: Tally, number: int = TOLD) -> list[int]:
    """Return the indices of the ``number`` outcomes that deviate the most, in standard deviations.

    ``tally`` has the counts of all outcomes.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.nan_to_num((tally.seen - tally.expected) / np.sqrt(tally.variance))
    return [int(place) for place in np.argsort(-np.abs(off), kind="stable")[:number]]


def farthest_told(tally: Tally) -> tuple[str, ...]:
    """Return one line with the counts of each of the ``TOLD`` outcomes of ``tally`` that deviate the most."""
    return tuple(
        f"{tally.name(i)} came {tally.seen[i]:.0f} times, {tally.beside.format(tally.expected[i])}"
        for i in farthest(tally)
    )


def tally_figure(tally: Tally) -> Mapping[str, Any]:
    """Return the data of ``tally`` for a report's table: the most deviating and the most probable outcomes.

    Keys: ``samples``, the number of samples; ``cells``, the number of all outcomes; ``sampled``, whether the expected
    counts come from samples too; ``shown``, a list with [name, expected share, observed count] of each outcome.
    """
    likeliest = np.argsort(-tally.expected, kind="stable")[:SHOWN].tolist()
    chosen = sorted({*farthest(tally, SHOWN), *likeliest}, key=lambda i: (-tally.expected[i], i))
    return {
        "samples": tally.samples,
        "cells": len(tally.seen),
        "sampled": tally.sampled,
        "shown": [[str(tally.name(i)), float(tally.expected[i] / tally.samples), int(tally.seen[i])] for i in chosen],
    }
