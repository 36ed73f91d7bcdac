"""What speculative sampling gives for one call, as vectors, and how far rounding can move each entry of them.

The rule (Leviathan et al. 2211.17192): draft d is kept with probability min(1, p(d)/q(d)); the first that is not is
replaced by a token from (p - q)+, and behind the last one comes a token from p. A right program computes that in
floats, of rows that do not quite sum to 1, scaled to 1 or as they are. Each entry then lies between two numbers,
derived here.

Let e be the spacing of the floats at 1, so that an operation is off by e/2 relatively. An entry of p or q may be stored
in those floats and divided by the sum of its row: that is e, and what the two sums are is known, so the factor between
the rows lies between known numbers, but for the rounding of the sums (``Floats.sums``). With p and q so far off,

* a ratio has e/2 more for its division, and a difference e/2, and e/2 where it is divided by the sum of the row;
* an entry of a pmf is a weight among weights: it is smallest when it is as small as it can be and the others as large.

So an entry whose p and q are well apart is known to a few e, whatever the vocabulary, and one whose p and q are as good
as equal may be nothing. A look-up in a cumulated row moves e from cell to cell, for each partial sum is rounded once.
Small floats of 16 bits are spaced evenly: their rounding is no part of the number, but a number (``Floats.least``).
Probabilities that the program made of logits are off by more: each row says by how many e (``PmfRow.off``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from specverify.laws.rounding import FLOAT16, FLOAT32, UNDERFLOW
from specverify.reference import Tokens


class PmfRow(NamedTuple):
    """A row of probabilities."""

    pmf: Any
    """``[vocabulary]``, float64, as the program is given it or is to make it: the sum is 1 within rounding."""
    off: Any = 0.0
    """How many spacings each entry may be off where the program made it: a number, or ``[vocabulary]``."""
    doubtful: Any = False
    """Which entries may as well be 0, because a truncation ties or rounds there: a bool, or ``[vocabulary]``."""


class Rows(NamedTuple):
    """The rows of one call."""

    p: tuple[PmfRow, ...]
    q: tuple[PmfRow, ...]
    drafts: Tokens

    @property
    def vocabulary(self) -> int:
        """How many tokens there are."""
        return len(self.p[0].pmf)


class Floats(NamedTuple):
    """The floats a program computes in."""

    epsilon: float
    """Their spacing at 1."""
    sums: float = 0.0
    """How far a sum of a row may be off relatively."""
    cells: float = 0.0
    """By how much a look-up in a cumulated row may change an entry."""
    least: float = UNDERFLOW
    """By how much an entry may be off that is not a normal number."""


class Between(NamedTuple):
    """What is allowed: numbers, or arrays ``[vocabulary]``."""

    low: Any
    high: Any


SMALLEST = {FLOAT16: 2.0**-24}
"""The spacing of the smallest floats, of the dtypes in which it counts."""


def added_up(epsilon: float, count: int) -> Floats:
    """Return floats whose sums are made pairwise, as by ``np.sum`` and ``torch.sum`` of a row of ``count``."""
    return Floats(epsilon, (math.log2(max(count, 2)) + 8) * epsilon)


def one_by_one(epsilon: float, given: float, count: int, *, looked_up: bool) -> Floats:
    """Return floats whose sums are made one by one, in float32 where they are coarser, or in pairs; or looked up.

    ``given`` is the spacing of the dtype that the rows are given in: what that can hold need not be lost.
    """
    sums = max(count * min(epsilon, FLOAT32) + epsilon, added_up(epsilon, count).sums)
    return Floats(epsilon, sums, epsilon if looked_up else 0.0, SMALLEST.get(given, UNDERFLOW))


EXACT = Floats(0.0, least=0.0)


def kept(rows: Rows, position: int, floats: Floats) -> Between:
    """Return the probability with which a draft is kept."""
    p, q = (_entries(row[position], rows.drafts[position], floats) for row in (rows.p, rows.q))
    off = floats.epsilon / 2
    low = p.low / q.high * (1 - off) if q.high > 0 else 0.0
    high = p.high / q.low * (1 + off) if q.low > 0 else 1.0 if p.high > 0 else 0.0
    return Between(float(min(1.0, low)), float(min(1.0, high)))


def behind(rows: Rows, position: int, floats: Floats) -> Between:
    """Return the probability of each token behind so many kept drafts, given that no more were kept."""
    p = _entries(rows.p[position], slice(None), floats)
    if position == len(rows.drafts):
        return _weights(p.low, p.high, floats)
    q = _entries(rows.q[position], slice(None), floats)
    off = floats.epsilon
    low = np.maximum(p.low - q.high, 0.0) * (1 - off)
    high = np.maximum(p.high - q.low, 0.0) * (1 + off)
    if low.any():
        return _weights(low, high, floats)
    return Between(np.zeros_like(low), (p.high > 0).astype(np.float64))  # rounding may leave nothing: any token of p


def reached(rows: Rows, floats: Floats) -> Iterator[Between]:
    """Yield the probability that so many drafts are kept and no more, for each number of them."""
    low, high = 1.0, 1.0
    for position in range(len(rows.drafts)):
        here = kept(rows, position, floats)
        yield Between(low * (1 - here.high), high * (1 - here.low))
        low, high = low * here.low, high * here.high
    yield Between(low, high)


def _entries(row: PmfRow, where: Any, floats: Floats) -> Between:
    """Return what entries may be: the row may be scaled to 1, or not, and its entries rounded."""
    scale = 1.0 / float(row.pmf.sum())
    pmf, doubtful = row.pmf[where], row.doubtful[where] if np.ndim(row.doubtful) else row.doubtful
    off = floats.epsilon * (1 + (row.off[where] if np.ndim(row.off) else row.off))
    low = pmf * min(1.0, scale * (1 - floats.sums)) * np.maximum(1 - off, 0.0) - floats.least
    high = pmf * max(1.0, scale * (1 + floats.sums)) * (1 + off) + floats.least
    return Between(np.where(doubtful, 0.0, np.maximum(low, 0.0)), np.where(pmf > 0, high, 0.0))


def _weights(low: Any, high: Any, floats: Floats) -> Between:
    """Return what entries may be once they are scaled to 1."""
    lows, highs = float(low.sum()), float(high.sum())
    with np.errstate(invalid="ignore", divide="ignore"):
        least = np.where(low > 0, low / (low + np.maximum(highs - high, 0.0)), 0.0)
        most = np.where(high > 0, high / (high + np.maximum(lows - low, 0.0)), 0.0)
    if floats.cells:
        least, most = np.maximum(least - floats.cells, 0.0), np.where(most > 0, most + floats.cells, 0.0)
    return Between(least, np.minimum(most, 1.0))
