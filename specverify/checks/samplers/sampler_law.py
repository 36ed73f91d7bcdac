"""Whether a black box has a known law: refuted, within a total variation of ``tv``, or undecided so far."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from specverify.base.verdict import Counterexample, Evidence, Status, Verdict
from specverify.checks.samplers.first_token import first_wrong_token
from specverify.checks.samplers.tally import Tally, farthest_told, tally_figure
from specverify.laws.known_law import KnownLaw
from specverify.reference import Claim, Tokens
from specverify.statistics.coarsening import EVERY_OUTCOME, Coarsening, bounding, coarsenings
from specverify.statistics.confidence_sequences import Interval, tv_sequence
from specverify.statistics.e_processes import Array, anytime_detectable_tv, log_e_value, log_mean

MISS = 0.1
"""The probability with which a difference that is called detectable is missed."""


class LawPlan(NamedTuple):
    """The settings of a test against a known law, fixed before the first sample.

    ``views`` are several partitions of the outcomes; the sampled counts of each give evidence against the law.
    ``bound`` is the partition on which the distance from the law is bounded. ``alarm`` is the false-alarm rate. The
    check holds if the distance is at most ``tv``. ``most_samples`` is the largest number of samples, and ``rounding``
    the largest relative error of the law.
    """

    law: KnownLaw
    views: tuple[Coarsening, ...]
    bound: Coarsening
    unseen: float
    """Probability of the outcomes that share one cell of ``bound``; differences among them are not detected."""
    alarm: float
    error: float
    """The probability that a sampler whose distance is above ``tv`` ever holds."""
    tv: float
    most_samples: int
    rounding: float


class LawFound(NamedTuple):
    """The counts of a test against a known law so far.

    ``counts`` has the number of samples of each possible outcome, in the order of the law. ``impossible`` has the
    others, which alone refute. ``samples`` is the number of all samples.
    """

    counts: Array
    samples: int = 0
    impossible: Mapping[Tokens, int] = {}
    """Outcome of probability 0 -> how often it was sampled."""


def plan_law(
    law: KnownLaw,
    *,
    alarm: float,
    error: float,
    tv: float,
    most_samples: int,
    rounding: float = 1e-6,
    draft: Array | None = None,
    more: Mapping[str, Array] | None = None,
) -> LawPlan:
    """Return the plan of a test against ``law``, the known law of ``k`` outcomes.

    Args:
        law: The law.
        alarm: The false-alarm rate.
        error: The probability that the check holds for a distance above ``tv``.
        tv: The distance up to which the check holds.
        most_samples: The largest number of samples.
        rounding: The largest relative error of the law.
        draft: A pmf q ``[k]``; adds a partition of the outcomes by p/q.
        more: Name -> labels ``[k]``; each adds a partition of the outcomes by label.
    """
    bound, unseen, _ = bounding(law.masses, most_samples)
    views = coarsenings(law.masses, most_samples, draft, more)
    return LawPlan(law, views, bound, min(unseen + law.unnamed, 1.0), alarm, error, tv, most_samples, rounding)


def law_begun(plan: LawPlan) -> LawFound:
    """Return zero counts, before the first sample; ``plan`` has the law."""
    return LawFound(np.zeros(len(plan.law.masses), dtype=np.int64))


def law_seen(plan: LawPlan, found: LawFound, rows: Sequence[Tokens]) -> LawFound:
    """Return the counts ``found`` with the outcomes ``rows`` of one more batch added; ``plan`` has the law."""
    places = plan.law.places(rows)
    wrong = (places < 0) | (plan.law.masses[places] == 0)
    impossible = dict(found.impossible)
    for number in np.flatnonzero(wrong).tolist():
        impossible[rows[number]] = impossible.get(rows[number], 0) + 1
    new = np.bincount(places[~wrong], minlength=len(plan.law.masses))
    return LawFound(found.counts + new, found.samples + len(rows), impossible)


def log_evidence(plan: LawPlan, found: LawFound) -> float:
    """Return the logarithm of the e-value of the counts ``found`` against the law of ``plan``.

    The e-value is the mean over several partitions of the outcomes. The result is infinite if an outcome of probability
    0 was sampled.
    """
    if found.impossible:
        return math.inf
    seen = np.flatnonzero(found.counts)
    values = []
    for view in plan.views:
        if view.name == EVERY_OUTCOME:
            counts, masses = found.counts[seen], plan.law.masses[seen]
        else:
            counts, masses = view.counts(found.counts), view.masses
        values.append(log_e_value(counts, masses, rounding=plan.rounding))
    return float(log_mean(values))


def law_bounds(plan: LawPlan, found: LawFound) -> Interval:
    """Return bounds on the total variation of the sampler from the law, valid after every batch.

    ``found`` has the counts so far, and ``plan`` the law and the settings.
    """
    seen = tv_sequence(
        _observed(plan, found), found.samples, len(plan.bound.masses) + 1, plan.error, tight_at=plan.most_samples
    )
    return Interval(seen.lower, min(1.0, seen.upper + plan.unseen))


def _observed(plan: LawPlan, found: LawFound) -> float:
    """Return the total variation between the shares of the samples and the law.

    Outcomes are first combined to the groups of ``plan.bound``. ``found`` has the counts of the samples so far.
    """
    shares = plan.bound.counts(found.counts) / found.samples
    outside = sum(found.impossible.values()) / found.samples
    return min(float(np.abs(shares - plan.bound.masses).sum() + outside) / 2, 1.0)


def law_status(plan: LawPlan, found: LawFound) -> Status:
    """Return the status that the counts ``found`` give so far.

    REFUTED: the sampler does not have the law. HOLDS: its distance from the law is at most ``plan.tv``. UNKNOWN: more
    samples would decide.
    """
    if log_evidence(plan, found) >= -math.log(plan.alarm):
        return Status.REFUTED
    return Status.HOLDS if law_bounds(plan, found).upper <= plan.tv else Status.UNKNOWN


def law_verdicts(name: str, plan: LawPlan, found: LawFound) -> Sequence[Verdict]:
    """Return two verdicts on the subject ``name``: on impossible outcomes, and on the law.

    ``found`` has the counts so far, and ``plan`` the law and the settings.
    """
    status, bounds, surprise = law_status(plan, found), law_bounds(plan, found), log_evidence(plan, found)
    figures = {"samples": found.samples, "tv_at_most": bounds.upper, "tv_at_least": bounds.lower}
    said = {
        Status.REFUTED: f"it has not the law: e-value {_power_of_ten(surprise)}, alarm {plan.alarm:.1g}",
        Status.HOLDS: f"TV at most {bounds.upper:.4f}, tv {plan.tv:g}, error {plan.error:.1g}",
        Status.UNKNOWN: _undecided(plan, found, bounds),
    }
    law = Verdict(
        name,
        "samples_fit_law",
        status,
        said[status],
        Claim.LOSSLESS,
        Evidence.STATISTICAL,
        _example(plan, found) if status is Status.REFUTED else None,
        {
            **figures,
            "log10_e": surprise / math.log(10),
            "alarm": plan.alarm,
            "tally": tally_figure(_tally(plan, found)),
            "notes": _detectable(plan, found.samples),
        },
    )
    return [_support_verdict(name, plan, found), law]


def _support_verdict(name: str, plan: LawPlan, found: LawFound) -> Verdict:
    """Return the verdict on the impossible outcomes of the subject ``name``.

    If none was sampled, the verdict bounds their probability. ``found`` has the counts so far, and ``plan`` the
    settings.
    """
    impossible = sorted(found.impossible.items(), key=lambda item: -item[1])
    unseen = -math.expm1(math.log(plan.error) / found.samples)
    example = None
    if impossible:
        tokens, times = impossible[0]
        status = Status.REFUTED
        statement = f"{tokens} was emitted {times} times in {found.samples} samples, the law gives it probability 0"
        example = Counterexample((f"{found.samples} samples",), statement)
    else:
        status = Status.HOLDS if unseen <= plan.tv else Status.UNKNOWN
        statement = f"none of {found.samples} samples has probability 0: such outcomes have less than {unseen:.2g}"
    figures = {"samples": found.samples, "tv_at_most": unseen}
    return Verdict(
        name, "samples_are_supported", status, statement, Claim.SUPPORTED, Evidence.STATISTICAL, example, figures
    )


def _undecided(plan: LawPlan, found: LawFound, bounds: Interval) -> str:
    ways = ["most_samples"] if plan.unseen < plan.tv else []
    unseen = (
        f", of which {plan.unseen:.2g} is the mass of outcomes too rare to be counted one by one"
        if plan.unseen > 1e-4
        else ""
    )
    return (
        f"{found.samples} samples do not refute it, but leave a TV of {bounds.upper:.4f} possible{unseen}; "
        f"tv is {plan.tv:g}: give a larger {' or '.join([*ways, 'tv'])}"
    )


def _example(plan: LawPlan, found: LawFound) -> Counterexample:
    """Return a counterexample with the sampled outcomes that deviate the most from the law of ``plan``.

    If an impossible outcome was sampled, it is shown instead. ``found`` has the counts so far.
    """
    if found.impossible:
        return _support_verdict("", plan, found).counterexample or Counterexample((), "")
    cells = plan.bound.masses
    noise = float(np.sqrt(cells * (1 - cells) / (2 * math.pi * found.samples)).sum())
    then = (
        f"a total variation of {_observed(plan, found):.3f} from the law is seen, right samples show about {noise:.3f}"
    )
    tally = _tally(plan, found)
    told = farthest_told(tally)
    fault = first_wrong_token(tally) or (told[0] if told else "")
    return Counterexample((f"{found.samples} samples",), then, told, fault=fault)


def _tally(plan: LawPlan, found: LawFound) -> Tally:
    expected = found.samples * plan.law.masses
    variance = np.maximum(expected, 1.0)
    return Tally(plan.law.outcome, found.counts, expected, variance, found.samples, "the law expects {:.1f}")


def _detectable(plan: LawPlan, samples: int) -> list[str]:
    """Return one line for each partition of the outcomes, about its power at ``samples`` samples.

    The line states the smallest total variation between its cells that would be refuted, or that the partition has too
    many cells. ``plan`` has the partitions and the false-alarm rate.
    """
    lines = []
    for view in plan.views:
        cells = len(view.masses)
        if view.masses.min() * samples < 1:
            lines.append(f"{view.name}: {cells} cells, too many for {samples} samples to promise what they show")
            continue
        tv = anytime_detectable_tv(samples, cells, plan.alarm, MISS, tests=len(plan.views), rounding=plan.rounding)
        lines.append(f"{view.name}: {cells} cells, a total variation of {tv:.4f} between them would have been refuted")
    return lines


def _power_of_ten(logarithm: float) -> str:
    return "without bound" if math.isinf(logarithm) else f"10^{logarithm / math.log(10):.1f}"
