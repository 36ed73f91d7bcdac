"""Independence of the rows of one call, and of rows of two calls.

If the rows of a batch share one stream of random numbers, or if every call restarts its stream, the law of every single
row is still right. So pairs of rows are tested. A *couple* is two rows of one call (neighbours, rows 2, 4, 8 ... apart,
half a call apart, or at the distance at which earlier calls repeat), or the same row of two calls. The possible texts
of a row are divided into four cells before the first sample, and couples are counted by the cells of their two rows.
``statistics.unknown_laws`` describes the evidence against independence.

A number that all rows of a call share need not show in couples: each row may use it in another way. So the shares of
the cells in two calls with different seeds are compared too. The null hypothesis is that the rows of each call are
independent samples of one law. Then the first rows of a call help to predict its other rows no better than the rows of
the other call do.

If independence is not refuted, the dependence is bounded. Two successive couples (a, b) and (c, d), which come from
different calls, give one sample of each of two laws: (a, b) has the joint law, and (c, b) the product of the two
marginal laws. The distance between the two laws is bounded from these samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple
from zlib import crc32

import numpy as np

from specverify.base.verdict import Counterexample, Evidence, Status, Verdict
from specverify.reference import Tokens
from specverify.statistics.confidence_sequences import TWO_SAMPLES, tv_sequence
from specverify.statistics.e_processes import Array
from specverify.statistics.unknown_laws import (
    NO_COUPLES_YET,
    NOTHING_YET,
    dependence_gains,
    evidence,
    two_sample_gains,
)

CELLS = 4
FULL = 0.98
"""If one cell holds at least this share of the couples, the outputs are nearly constant and dependence cannot show."""
CellOf = Callable[[Tokens], int]


class IndependencePlan(NamedTuple):
    """The settings of an independence test, fixed before the first sample.

    ``cell`` maps a text to one of four cells. ``alarm`` is the false-alarm rate. The check holds if the dependence is
    at most ``tv``; ``error`` is the probability that it holds for a larger one. At most ``most_couples`` pairs of rows
    are counted.
    """

    what: str
    """The tested quantity in words, such as ``rows of one call``."""
    check: str
    cell: CellOf
    alarm: float
    error: float
    tv: float
    most_couples: int


class IndependenceFound(NamedTuple):
    """The counts and the evidence of an independence test so far.

    ``evidence`` holds log-evidence: the logarithms of several e-values against independence. ``joint`` counts all pairs
    of rows. Two successive pairs (a, b) and (c, d) are evaluated together: ``straight`` counts (a, b), which has the
    joint law, and ``crossed`` counts (c, b), whose rows are independent. The counts are tables ``[4, 4]`` by cells.
    """

    evidence: Array = NO_COUPLES_YET
    joint: Array = np.zeros((CELLS, CELLS), dtype=np.int64)
    """Number of pairs by the cells of their two rows ``[4, 4]``."""
    straight: Array = np.zeros((CELLS, CELLS), dtype=np.int64)
    crossed: Array = np.zeros((CELLS, CELLS), dtype=np.int64)
    waiting: tuple[tuple[int, int], ...] = ()
    """A pair that waits for the next pair."""
    between: Array = NOTHING_YET
    """Log-evidence ``[s]`` that the shares of the cells differ between two calls, which a shared number explains."""
    batches: int = 0
    """The number of batches, of two calls each, whose shares were compared; 0 in the test of rows of two calls."""
    difference: float = 0.0
    """The total variation between the shares of two calls, summed over the batches."""
    expected: float = 0.0
    """What ``difference`` would be on average if the rows were independent."""

    @property
    def couples(self) -> int:
        """Return the number of couples (pairs of rows) counted."""
        return int(self.joint.sum())

    @property
    def log_evidence(self) -> float:
        """Return the logarithm of the e-value against independence.

        It is the mean of two e-values if shares of calls were compared: of the couples, and of the shares.
        """
        of_couples = float(evidence(self.evidence))
        if not self.batches:
            return of_couples
        return float(np.logaddexp(of_couples, evidence(self.between)) - math.log(2))


def cells_of(outcomes: Sequence[Tokens], weights: Sequence[float]) -> CellOf:
    """Return a function that assigns each outcome to one of four cells, which have nearly equal probability.

    ``weights`` are the probabilities of ``outcomes``. All other outcomes are assigned by a hash.
    """
    cells, held = dict[Tokens, int](), [0.0] * CELLS
    for index in sorted(range(len(outcomes)), key=lambda index: -weights[index]):
        lightest = held.index(min(held))
        cells[outcomes[index]] = lightest
        held[lightest] += weights[index]
    return lambda tokens: cells[tokens] if tokens in cells else crc32(repr(tokens).encode()) % CELLS


def couples_seen(
    plan: IndependencePlan, found: IndependenceFound, left: Sequence[Tokens], right: Sequence[Tokens]
) -> IndependenceFound:
    """Return the evidence ``found`` about independence, with the pairs of rows ``(left[i], right[i])`` added.

    Pairs are evaluated by two: if their number is odd, the last pair is stored until the next call. ``plan`` has the
    settings of the test.
    """
    cells = [*found.waiting, *((plan.cell(one), plan.cell(other)) for one, other in zip(left, right, strict=True))]
    number = len(cells) - len(cells) % 2
    if not number:
        return found._replace(waiting=tuple(cells))
    x, y = np.array(cells[:number]).T
    joint, straight, crossed = found.joint.copy(), found.straight.copy(), found.crossed.copy()
    np.add.at(joint, (x, y), 1)
    np.add.at(straight, (x[::2], y[::2]), 1)
    np.add.at(crossed, (x[1::2], y[::2]), 1)
    return found._replace(
        evidence=found.evidence + dependence_gains(found.joint, x, y),
        joint=joint,
        straight=straight,
        crossed=crossed,
        waiting=tuple(cells[number:]),
    )


def shares_seen(
    plan: IndependencePlan, found: IndependenceFound, one: Sequence[Tokens], other: Sequence[Tokens]
) -> IndependenceFound:
    """Return the evidence ``found`` after a test whether two calls with different seeds have the same law.

    ``one`` and ``other`` are the rows of the two calls, equally many. Rows are counted in the cells to which ``plan``
    maps them, and the shares of the cells in both calls are compared. The law of each call is estimated from its first
    rows, and judged by the next rows, as many again, until the call ends.
    """
    counts = [np.eye(CELLS)[[plan.cell(tokens) for tokens in rows]].cumsum(axis=0) for rows in (one, other)]
    rows, between = len(one), found.between
    known = 1
    while known < rows:
        until = min(2 * known, rows)
        past = [held[known - 1] for held in counts]
        fresh = [held[until - 1] - held[known - 1] for held in counts]
        between = between + two_sample_gains(*past, *fresh)
        known = until
    shares = [held[-1] / rows for held in counts]
    pooled = (shares[0] + shares[1]) / 2
    return found._replace(
        between=between,
        batches=found.batches + 1,
        difference=found.difference + float(np.abs(shares[0] - shares[1]).sum() / 2),
        expected=found.expected + float(np.sqrt(pooled * (1 - pooled) / (math.pi * rows)).sum()),
    )


def couples_in(rows: Sequence[Tokens], lag: int) -> tuple[Sequence[Tokens], Sequence[Tokens]]:
    """Return pairs of rows whose indices differ by ``lag``, as (first rows, second rows) of equal length.

    A row is in at most one pair.
    """
    starts = [start + i for start in range(0, len(rows) - 2 * lag + 1, 2 * lag) for i in range(lag)]
    return [rows[i] for i in starts], [rows[i + lag] for i in starts]


def independence_status(plan: IndependencePlan, found: IndependenceFound) -> Status:
    """Return the status that the evidence ``found`` gives so far.

    REFUTED: the rows are dependent. HOLDS: the dependence is at most ``plan.tv``. NOT_APPLICABLE: the output is nearly
    constant. UNKNOWN: more samples would decide.
    """
    if found.log_evidence >= -math.log(plan.alarm):
        return Status.REFUTED
    if _is_constant(found):
        return Status.NOT_APPLICABLE
    return Status.HOLDS if _dependence(plan, found) <= plan.tv else Status.UNKNOWN


def independence_verdict(name: str, plan: IndependencePlan, found: IndependenceFound, notes: Sequence[str]) -> Verdict:
    """Return the verdict on the subject ``name`` from the evidence ``found``; ``notes`` are added to its figures.

    ``plan`` has the settings of the test.
    """
    status, couples = independence_status(plan, found), found.couples
    bound = _dependence(plan, found)
    same = np.trace(found.joint) / max(couples, 1)
    shares = found.joint.sum(axis=1) @ found.joint.sum(axis=0) / max(couples, 1) ** 2
    alike = f"{same:.3f} of {couples} couples are alike, {shares:.3f} would be if they were not"
    if found.batches and evidence(found.between) > evidence(found.evidence):
        pairs, each = found.batches, "" if found.batches == 1 else f", mean of {found.batches} pairs of calls"
        alike = (
            f"the shares of tokens in two calls differ by {found.difference / pairs:.3f} (total variation{each}), "
            f"{found.expected / pairs:.3f} would be expected: the rows of a call share a random number, or calls have "
            "different laws"
        )
    statement = {
        Status.REFUTED: f"{plan.what} are dependent: {alike}",
        Status.HOLDS: f"{plan.what}: dependence of total variation {bound:.3f} at most, in {CELLS} x {CELLS} cells",
        Status.NOT_APPLICABLE: f"{plan.what}: hardly anything varies in {couples} couples, so nothing can depend",
        Status.UNKNOWN: f"{plan.what}: {couples} couples leave a dependence of {bound:.3f} possible, "
        f"tv is {plan.tv:g}: more samples would decide",
    }[status]
    example = Counterexample((f"{couples} couples, {plan.what}",), alike) if status is Status.REFUTED else None
    figures = {"samples": couples, "tv_at_most": bound, "notes": list(notes)}
    return Verdict(name, plan.check, status, statement, None, Evidence.STATISTICAL, example, figures)


def _dependence(plan: IndependencePlan, found: IndependenceFound) -> float:
    """Return an upper bound on the total variation of the pairs' joint law from the product of its marginals.

    ``found`` has the counts so far; without any the bound is 1. ``plan`` has the settings of the test.
    """
    number = int(found.straight.sum())
    if not number:
        return 1.0
    seen = float(np.abs(found.straight - found.crossed).sum() / (2 * number))
    tight_at = max(plan.most_couples // 2, 1)
    return tv_sequence(seen, number, CELLS**2, plan.error, tight_at=tight_at, variance=TWO_SAMPLES).upper


def _is_constant(found: IndependenceFound) -> bool:
    total = found.couples
    return total > 0 and bool(max(found.joint.sum(axis=0).max(), found.joint.sum(axis=1).max()) >= FULL * total)
