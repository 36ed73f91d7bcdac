"""Whether two black boxes have the same unknown law: speculative decoding against plain decoding.

Both are sampled, batch by batch. Several functions of a sequence are compared: the whole sequence, its length, and its
token at each of the first positions. A whole sequence is rarely sampled twice, but a token at a position is. The
evidence is the mean of the e-values of all these comparisons.

The distance between the two laws is bounded for whole sequences. A pilot sample of the plain sampler, which gives no
evidence, determines the cells: each sequence that is frequent in the pilot has a cell, and all other sequences share
one. A difference inside the shared cell adds at most the probability of this cell in the plain law, which is bounded
from the samples.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from specverify.base.verdict import Counterexample, Evidence, Status, Verdict
from specverify.checks.samplers.tally import Tally, farthest_told, tally_figure
from specverify.reference import Claim, Tokens
from specverify.statistics.confidence_sequences import TWO_SAMPLES, Interval, rate_sequence, tv_sequence
from specverify.statistics.e_processes import Array, log_mean
from specverify.statistics.unknown_laws import NOTHING_YET, evidence, two_sample_gains

POSITIONS = 4
FREQUENT = 5
"""Least count of an outcome in the pilot sample for which it gets its own cell."""
View = Callable[[Tokens], Hashable]


class Compared(NamedTuple):
    """The counts and the evidence of one function of sequences.

    ``ours`` counts the values of the function for sequences from the tested sampler, and ``theirs`` for sequences from
    the plain sampler. ``evidence`` holds log-evidence: the logarithms of several e-values against equal laws.
    """

    ours: Mapping[Hashable, int] = {}
    theirs: Mapping[Hashable, int] = {}
    evidence: Array = NOTHING_YET


class ReferencePlan(NamedTuple):
    """The settings of a comparison of two samplers, fixed before the first sample that counts.

    ``frequent`` are the sequences with a cell of their own; all others share one cell. ``alarm`` is the false-alarm
    rate. The check holds if the distance is at most ``tv``; ``error`` is the probability that it holds for a larger
    distance. ``most_samples`` is the largest number of samples from each sampler.
    """

    frequent: frozenset[Tokens]
    alarm: float
    error: float
    tv: float
    most_samples: int


class ReferenceFound(NamedTuple):
    """The counts and the evidence of a comparison so far.

    ``compared`` maps the name of each compared function of sequences to its counts. ``samples`` sequences were drawn
    from each sampler.
    """

    compared: Mapping[str, Compared]
    samples: int = 0


def views(longest: int = POSITIONS) -> dict[str, View]:
    """Return name -> function of a sequence whose values are compared.

    The values are the sequence itself, its length, and its token at each of the first ``longest`` positions.
    """
    result: dict[str, View] = {"whole sequences": lambda tokens: tokens, "length": len}
    for position in range(longest):
        result[f"token {position + 1}"] = lambda tokens, position=position: tokens[position : position + 1]  # type: ignore[misc]
    return result


def plan_reference(
    pilot: Sequence[Tokens], *, alarm: float, error: float, tv: float, most_samples: int
) -> ReferencePlan:
    """Return the plan of a comparison of two samplers.

    Args:
        pilot: A sample of the plain sampler that gives no evidence.
        alarm: The false-alarm rate.
        error: The probability that the check holds for a distance above ``tv``.
        tv: The distance up to which the check holds.
        most_samples: The largest number of samples, at which the bound on the distance is made as tight as possible.
    """
    frequent = frozenset(tokens for tokens, count in Counter(pilot).items() if count >= FREQUENT)
    return ReferencePlan(frequent, alarm, error, tv, most_samples)


def reference_begun() -> ReferenceFound:
    """Return the empty counts and evidence, before the first sample."""
    return ReferenceFound({name: Compared() for name in views()})


def reference_seen(found: ReferenceFound, ours: Sequence[Tokens], theirs: Sequence[Tokens]) -> ReferenceFound:
    """Return the evidence ``found`` with one more batch added.

    ``ours`` are sequences from the tested sampler, and ``theirs`` equally many from the plain sampler.
    """
    compared = {
        name: _compared(found.compared[name], Counter(map(view, ours)), Counter(map(view, theirs)))
        for name, view in views().items()
    }
    return ReferenceFound(compared, found.samples + len(ours))


def _compared(past: Compared, ours: Counter[Hashable], theirs: Counter[Hashable]) -> Compared:
    batch = list(ours.keys() | theirs.keys())
    known = list(past.ours.keys() | past.theirs.keys())
    gains = NOTHING_YET
    if known:
        # What this batch has not adds nothing, but counts for the size of the past: it shares one place.
        here = set(batch)
        rest = [outcome for outcome in known if outcome not in here]
        gains = two_sample_gains(
            *(
                [counts.get(key, 0) for key in batch] + [sum(counts.get(key, 0) for key in rest)]
                for counts in (past.ours, past.theirs)
            ),
            *([counts[key] for key in batch] + [0] for counts in (ours, theirs)),
        )
    return Compared(Counter(past.ours) + ours, Counter(past.theirs) + theirs, past.evidence + gains)


def log_evidence(found: ReferenceFound) -> float:
    """Return the logarithm of the e-value in ``found`` against equal laws of both samplers."""
    return float(log_mean([evidence(item.evidence) for item in found.compared.values()]))


def reference_bounds(plan: ReferencePlan, found: ReferenceFound) -> Interval:
    """Return bounds on the total variation between the two laws of whole sequences, valid after every batch.

    ``found`` has the counts so far, and ``plan`` the settings.
    """
    whole, n = found.compared["whole sequences"], found.samples
    if not n:
        return Interval(0.0, 1.0)
    cells = [(whole.ours.get(key, 0), whole.theirs.get(key, 0)) for key in plan.frequent]
    ours, theirs = (n - sum(cell[side] for cell in cells) for side in (0, 1))
    observed = (sum(abs(a - b) for a, b in cells) + abs(ours - theirs)) / (2 * n)
    seen = tv_sequence(observed, n, len(cells) + 1, plan.error / 2, tight_at=plan.most_samples, variance=TWO_SAMPLES)
    rare = rate_sequence(theirs, n, plan.error / 2).upper
    return Interval(seen.lower, min(1.0, seen.upper + rare))


def reference_status(plan: ReferencePlan, found: ReferenceFound) -> Status:
    """Return the status that the evidence ``found`` gives so far.

    REFUTED: the laws differ. HOLDS: their distance is at most ``plan.tv``. UNKNOWN: more samples would decide.
    """
    if log_evidence(found) >= -math.log(plan.alarm):
        return Status.REFUTED
    return Status.HOLDS if reference_bounds(plan, found).upper <= plan.tv else Status.UNKNOWN


def reference_verdict(name: str, plan: ReferencePlan, found: ReferenceFound) -> Verdict:
    """Return the verdict on the subject ``name`` from the counts and evidence ``found`` so far.

    ``plan`` has the settings.
    """
    status, bounds, surprise = reference_status(plan, found), reference_bounds(plan, found), log_evidence(found)
    refuting = max(found.compared, key=lambda view: float(evidence(found.compared[view].evidence)))
    statement = {
        Status.REFUTED: f"it has another law than the reference: e-value 10^{surprise / math.log(10):.1f}, "
        f"alarm {plan.alarm:.1g}",
        Status.HOLDS: f"total variation from the reference at most {bounds.upper:.4f}, error {plan.error:.1g}, "
        f"tv {plan.tv:g}",
        Status.UNKNOWN: f"{found.samples} samples of each show no difference, but leave a total variation of "
        f"{bounds.upper:.4f} possible; tv is {plan.tv:g}: give a larger most_samples or tv",
    }[status]
    example = _example(found, refuting) if status is Status.REFUTED else None
    figures = {
        "samples": found.samples,
        "tv_at_most": bounds.upper,
        "tv_at_least": bounds.lower,
        "log10_e": surprise / math.log(10),
        "alarm": plan.alarm,
        "tally": tally_figure(_tally(found, "whole sequences")),
    }
    return Verdict(
        name, "samples_fit_reference", status, statement, Claim.LOSSLESS, Evidence.STATISTICAL, example, figures
    )


def _example(found: ReferenceFound, view: str) -> Counterexample:
    """Return a counterexample with the values whose counts in ``found`` differ the most.

    ``view`` names the function of a sequence that has these values: "whole sequences", "length", or "token 1" and so
    on.
    """
    told = farthest_told(_tally(found, view))
    let = (f"{found.samples} samples of each",)
    return Counterexample(let, f"they differ most in the counts of {view}", told, fault=told[0] if told else "")


def _tally(found: ReferenceFound, view: str) -> Tally:
    item = found.compared[view]
    keys = sorted(item.ours.keys() | item.theirs.keys(), key=repr)
    ours, theirs = (
        np.array([counts.get(key, 0) for key in keys], dtype=np.float64) for counts in (item.ours, item.theirs)
    )
    return Tally(keys.__getitem__, ours, theirs, ours + theirs, found.samples, "{:.0f} in the reference", True)
