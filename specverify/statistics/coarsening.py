"""Partitions of the outcomes of a large law into few cells, chosen before the first sample.

A bias on thirty of a hundred thousand tokens is diluted in cells of many tokens, while in cells of one token the counts
are too small. The best partition is unknown, so several are used at once, and the evidence is the mean of their
e-values. Compared with the best partition this costs at most the logarithm of their number.

One partition bounds the distance to the law: a cell for each of the most likely outcomes, and one cell for the rest. A
deviation within that last cell is at most its mass, as in ``goodness_of_fit``, so the bound holds for the law.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from specverify.statistics.confidence_sequences import ONE_SAMPLE, crossing
from specverify.statistics.e_processes import Array

FEWEST: Final = 10
"""Smallest expected count of a cell at the end of the sample."""
BLOCKS: Final = 128
RANKS: Final = 64
EVERY_OUTCOME: Final = "every outcome by itself"


class Coarsening(NamedTuple):
    """A partition of outcomes into cells, with a name for reports."""

    name: str
    labels: Array
    """``[k]``: index of each outcome's cell; -1 for an outcome of probability 0."""
    masses: Array
    """``[cells]``: probability of each cell."""

    def counts(self, counts: Array) -> Array:
        """Return the counts of the cells, given the counts ``[k]`` of the outcomes.

        Outcomes of probability 0 are left out.
        """
        some = self.labels >= 0
        return np.bincount(self.labels[some], weights=counts[some], minlength=len(self.masses))


def coarsenings(
    masses: Array, samples: int, draft: Array | None = None, more: Mapping[str, Array] | None = None
) -> tuple[Coarsening, ...]:
    """Return partitions of the outcomes of the law ``masses`` ``[k]``, for a test with up to ``samples`` samples.

    The first partition has a cell for every possible outcome. In the others, a cell with an expected count below ten is
    joined with a neighbour; they are left out if they have one cell or equal the first:

    * *by probability*: rare outcomes of similar probability share cells.
    * *by rank*, for laws with many outcomes: 64 cells of equal mass, of outcomes sorted by probability.
    * *by token id*, for laws with many outcomes: ``BLOCKS`` blocks of neighbouring outcomes.
    * *by p/q*, if ``draft`` is given, a pmf ``[k]``: cells of similar p/q, which show a wrong residual.
    * one for each name in ``more``, which maps the name to the labels ``[k]`` of the cells.
    """
    reachable = masses > 0
    whole = np.where(reachable, np.cumsum(reachable) - 1, -1)
    value = [Coarsening(EVERY_OUTCOME, whole, masses[reachable])]
    wanted = {"by probability": _by_mass(masses, samples)}
    if reachable.sum() > BLOCKS:
        wanted["by rank"] = _by_rank(masses)
        wanted["by token id"] = np.arange(len(masses)) * BLOCKS // len(masses)
    if draft is not None:
        wanted["by p/q"] = _by_overlap(masses, draft)
    for name, labels in (wanted | dict(more or {})).items():
        joined = _joined(labels, masses, FEWEST / samples)
        made = np.bincount(joined[reachable], weights=masses[reachable])
        if 1 < len(made) < reachable.sum():
            value.append(Coarsening(name, np.where(reachable, joined, -1), made))
    return tuple(value)


def bounding(masses: Array, samples: int) -> tuple[Coarsening, float, float]:
    """Return the partition with the tightest bound on the distance, and the numbers ``unseen`` and ``noise``.

    The likeliest outcomes of the law ``masses`` have a cell each; the others, of total mass ``unseen``, share one.
    ``noise`` is the expected total variation of a correct sampler on the cells after ``samples`` samples. The partition
    minimises ``unseen + noise``.
    """
    order = np.argsort(-masses, kind="stable")
    sorted_masses = masses[order]
    noise = np.cumsum(np.sqrt(sorted_masses * (1 - sorted_masses) / (2 * math.pi * samples)))
    rest = np.maximum(1 - np.cumsum(sorted_masses), 0.0)
    rest[int((masses > 0).sum()) - 1 :] = 0.0
    separate = int(np.argmin(noise + rest + np.sqrt(rest * (1 - rest) / (2 * math.pi * samples)))) + 1
    labels = np.full(len(masses), separate)
    labels[order[:separate]] = np.arange(separate)
    labels[masses == 0] = -1
    unseen = float(rest[separate - 1])
    made = np.append(sorted_masses[:separate], [unseen] if unseen else [])
    return Coarsening("bounding", labels, made), unseen, float(noise[separate - 1])


def samples_to_hold(masses: Array, tv: float, error: float, most: int) -> int:
    """Return a number of samples at which a correct sampler is expected to be shown within ``tv`` of its law.

    At this number, the upper bound on the total variation between the sampler and the law ``masses`` ``[k]`` is
    expected to be at most ``tv``. ``error`` is the probability that the bound is wrong. Returns ``most`` if the search
    finds no smaller number.
    """

    def enough(samples: int) -> bool:
        _, unseen, noise = bounding(masses, samples)
        variance = ONE_SAMPLE * samples
        return 1.1 * noise + unseen + crossing(variance, variance, math.log(error)) / samples <= tv

    samples = 64
    while samples < most and not enough(samples):
        samples = math.ceil(1.2 * samples)
    return min(samples, most)


def _by_mass(masses: Array, samples: int) -> Array:
    """Return the number of the cell of each outcome, ``[k]``, for cells of similar mass.

    An outcome of the law ``masses`` ``[k]`` whose expected count in ``samples`` samples is at least ``FEWEST`` has its
    own cell. Others share a cell if floor(log2 mass) is equal.
    """
    single = masses >= FEWEST / samples
    tail = np.where(single | (masses <= 0), 0, np.floor(np.log2(np.where(masses > 0, masses, 1.0))))
    _, bins = np.unique(tail, return_inverse=True)
    return np.where(single, bins.max() + np.cumsum(single), bins)


def _by_rank(masses: Array) -> Array:
    """Return, for each outcome, the index of its cell (0 to 63) in a partition by rank: ``[k]`` for the law ``masses``.

    The outcomes are sorted, the most probable first, and cut into 64 cells of about equal mass. The index of the cell
    is 64 times the total mass of the outcome and of all outcomes before it, rounded down, and at most 63. A test
    compares the counts of such cells with the law, because the counts of single outcomes are too small.
    """
    order = np.argsort(-masses, kind="stable")
    labels = np.empty(len(masses), dtype=np.int64)
    labels[order] = np.minimum(np.cumsum(masses[order]) * RANKS, RANKS - 1).astype(np.int64)
    return labels


def _by_overlap(masses: Array, draft: Array) -> Array:
    """Return the cell of each outcome by log2(p/q) in steps of 1/4, ``[k]``; outcomes with q = 0 share a cell.

    ``masses`` is p, ``draft`` is q.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.floor(4 * np.clip(np.log2(masses / draft), -8, 8))
    return np.unique(np.where(draft > 0, ratio, 100), return_inverse=True)[1]


def _joined(labels: Array, masses: Array, least: float) -> Array:
    """Return new labels 0, 1, ... of the outcomes, in which each cell has a mass of at least ``least`` where possible.

    ``labels`` ``[k]`` are the old labels, ``masses`` ``[k]`` the probabilities of the outcomes. A cell with less mass
    is joined with the next, the last one with the cell before it.
    """
    totals: Any = np.bincount(labels, weights=masses)
    merged, cell, held = np.zeros(len(totals), dtype=np.int64), 0, 0.0
    for label, mass in enumerate(totals):
        merged[label] = cell
        held += mass
        if held >= least:
            cell, held = cell + 1, 0.0
    if held < least and cell:
        merged[merged == cell] = cell - 1
    result: Array = merged[labels]
    return result
