"""The law of one call of speculative sampling as vectors, with bounds on the effect of rounding on each entry.

The rule (Leviathan et al. 2211.17192): draft d is accepted with probability min(1, p(d)/q(d)). The first rejected draft
is replaced by a token from (p - q)+; after the last draft comes a bonus token from p. A right program evaluates the
rule in floats, on rows that do not exactly sum to 1, with or without scaling them. Each entry then lies between two
numbers, derived here.

Let e be the spacing of the floats at 1, so an operation has a relative error of at most e/2. An entry of p or q may be
rounded once and divided by the sum of its row: an error of e. The two sums are known, so the factor between the rows is
known up to the rounding of the sums (``Floats.sums``). With such errors in p and q,

* a ratio adds e/2 for its division; a difference adds e/2, and e/2 more if it is divided by the sum of the row;
* an entry of a pmf is its weight divided by the sum of all weights. So its lower bound uses the least possible value of
  this weight and the largest possible values of all others.

So an entry with well separated p and q is known to a few e, whatever the vocabulary, and an entry with nearly equal p
and q may be 0. A lookup in a cumulative row moves e from one cell to the next, because each partial sum is rounded
once. Small 16-bit floats are evenly spaced: their error is absolute (``Floats.least``). Probabilities that the program
computed from logits have larger errors: each row states its error in units of e (``PmfRow.off``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from specverify.laws.rounding import FLOAT16, FLOAT32, UNDERFLOW
from specverify.reference import Tokens


class PmfRow(NamedTuple):
    """A row of probabilities (p or q at one position), with a bound on the errors of its entries in the program.

    ``pmf`` is the row, ``off`` the error of each entry, and ``doubtful`` marks the entries that may be 0 in the
    program.
    """

    pmf: Any
    """``[vocabulary]``, float64: the row that the program receives or shall compute; its sum is 1 up to rounding."""
    off: Any = 0.0
    """Error of each entry that the program computed, in units of the spacing of its floats: a number or
    ``[vocabulary]``."""
    doubtful: Any = False
    """Entries that may be 0, if a tie or rounding decides whether a truncation keeps them: bool or ``[vocabulary]``.
    """


class Rows(NamedTuple):
    """The rows of p and q of one call, and the drafted tokens."""

    p: tuple[PmfRow, ...]
    q: tuple[PmfRow, ...]
    drafts: Tokens

    @property
    def vocabulary(self) -> int:
        """Return the number of tokens in the vocabulary."""
        return len(self.p[0].pmf)


class Floats(NamedTuple):
    """The floating-point format of a program, and the errors of its sums and lookups."""

    epsilon: float
    """Spacing of the floats of this format at 1."""
    sums: float = 0.0
    """Bound on the relative error of a sum over a row."""
    cells: float = 0.0
    """Bound on the absolute error of an entry that is looked up in a cumulative row."""
    least: float = UNDERFLOW
    """Bound on the absolute error of an entry below the normal range of the dtype."""


class Between(NamedTuple):
    """Bounds on probabilities: the least value ``low`` and the largest ``high``, numbers or arrays ``[vocabulary]``."""

    low: Any
    high: Any


SMALLEST = {FLOAT16: 2.0**-24}
"""Dtype's epsilon -> spacing of its subnormal numbers, for the dtypes in which this error matters."""


def added_up(epsilon: float, count: int) -> Floats:
    """Return the rounding errors of a program that adds ``count`` entries pairwise, as ``np.sum`` and ``torch.sum`` do.

    ``epsilon`` is the spacing at 1 of the floats in which the program computes.
    """
    return Floats(epsilon, (math.log2(max(count, 2)) + 8) * epsilon)


def one_by_one(epsilon: float, given: float, count: int, *, looked_up: bool) -> Floats:
    """Return bounds on the rounding errors of a program that adds ``count`` entries in any order.

    They also hold if the program adds the entries one after the other, which has the largest error. Sums are computed
    in float32 or finer. ``epsilon`` is the spacing at 1 of the floats of the program, ``given`` that of the input rows.
    ``looked_up`` states that the program also looks up a uniform in a cumulative row.
    """
    sums = max(count * min(epsilon, FLOAT32) + epsilon, added_up(epsilon, count).sums)
    return Floats(epsilon, sums, epsilon if looked_up else 0.0, SMALLEST.get(given, UNDERFLOW))


EXACT = Floats(0.0, least=0.0)


def kept(rows: Rows, position: int, floats: Floats) -> Between:
    """Return bounds on the probability that a program accepts the draft at ``position`` of the call ``rows``.

    ``floats`` has the rounding errors of the program.
    """
    p, q = (_entries(row[position], rows.drafts[position], floats) for row in (rows.p, rows.q))
    off = floats.epsilon / 2
    low = p.low / q.high * (1 - off) if q.high > 0 else 0.0
    high = p.high / q.low * (1 + off) if q.low > 0 else 1.0 if p.high > 0 else 0.0
    return Between(float(min(1.0, low)), float(min(1.0, high)))


def behind(rows: Rows, position: int, floats: Floats) -> Between:
    """Return bounds on the law ``[V]`` of the token that follows exactly ``position`` accepted drafts.

    ``rows`` are those of the call, and ``floats`` has the rounding errors of the program.
    """
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
    """Yield bounds on the probability of exactly n accepted drafts, for n = 0 to the number of drafts.

    ``rows`` are those of the call, and ``floats`` has the rounding errors of the program.
    """
    low, high = 1.0, 1.0
    for position in range(len(rows.drafts)):
        here = kept(rows, position, floats)
        yield Between(low * (1 - here.high), high * (1 - here.low))
        low, high = low * here.low, high * here.high
    yield Between(low, high)


def _entries(row: PmfRow, where: Any, floats: Floats) -> Between:
    """Return bounds on entries of a row after the program may have rounded the row and scaled it to sum 1.

    ``where``, an index or a slice, selects the entries; ``floats`` has the rounding errors of the program.
    """
    scale = 1.0 / float(row.pmf.sum())
    pmf, doubtful = row.pmf[where], row.doubtful[where] if np.ndim(row.doubtful) else row.doubtful
    off = floats.epsilon * (1 + (row.off[where] if np.ndim(row.off) else row.off))
    low = pmf * min(1.0, scale * (1 - floats.sums)) * np.maximum(1 - off, 0.0) - floats.least
    high = pmf * max(1.0, scale * (1 + floats.sums)) * (1 + off) + floats.least
    return Between(np.where(doubtful, 0.0, np.maximum(low, 0.0)), np.where(pmf > 0, high, 0.0))


def _weights(low: Any, high: Any, floats: Floats) -> Between:
    """Return bounds on weights after a program has scaled them to sum 1.

    ``low`` and ``high`` are bounds on the weights before they are scaled, and ``floats`` has the rounding errors of the
    program.
    """
    lows, highs = float(low.sum()), float(high.sum())
    with np.errstate(invalid="ignore", divide="ignore"):
        least = np.where(low > 0, low / (low + np.maximum(highs - high, 0.0)), 0.0)
        most = np.where(high > 0, high / (high + np.maximum(lows - low, 0.0)), 0.0)
    if floats.cells:
        least, most = np.maximum(least - floats.cells, 0.0), np.where(most > 0, most + floats.cells, 0.0)
    return Between(least, np.minimum(most, 1.0))
