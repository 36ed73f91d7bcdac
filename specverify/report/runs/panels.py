"""Panels of reports: counts with simultaneous confidence bands, e-values over time, acceptance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import log10
from typing import Any

from specverify.base.verdict import Verdict
from specverify.laws.near_ties import Parting
from specverify.report.runs.said import EvidencePanel, Level, Levels, Panel, Partings
from specverify.statistics.confidence_sequences import rate_sequence

BANDS_MISS = 0.01
"""Probability that any band of a panel ever misses its true value, over all outcomes and times."""
SURE = f"All bands hold at once, at all times, with probability {1 - BANDS_MISS:g}."


def panels_of(verdict: Verdict) -> Iterator[Panel]:
    """Yield the panels that show the figures of ``verdict``; figures for which there is no panel are left out."""
    figures = verdict.figures
    if "tally" in figures:
        yield outcomes_panel(verdict.check, figures["tally"])
    if "course" in figures:
        yield evidence_panel(verdict.check, figures["course"], figures["alarm"])
    if figures.get("accepted"):
        yield from accepted_panels(figures["accepted"])
    if figures.get("acceptance"):
        yield from acceptance_panels(figures["acceptance"])
    if figures.get("rows"):
        yield distances_panel(figures["rows"])
    if figures.get("partings"):
        yield partings_panel(figures["partings"])


def outcomes_panel(check: str, told: Mapping[str, Any]) -> Levels:
    """Return the panel of expected and observed shares of outcomes in the check called ``check``.

    ``told`` is JSON data with these entries:

    * ``shown``: name, expected share and count of each outcome to show;
    * ``samples``: number of samples;
    * ``cells``: number of all outcomes;
    * ``sampled``: whether the expected shares are those of a sampled reference; if not, the panel has bands for the
      true shares.
    """
    samples, cells, sampled = int(told["samples"]), int(told["cells"]), bool(told["sampled"])
    rows = []
    for name, expected, count in told["shown"]:
        level = Level(str(name), int(count) / samples, float(expected))
        rows.append(level if sampled else _with_band(level, int(count), samples, cells))
    of_all = "" if len(rows) == cells else f", of {cells} those that are likeliest or off most"
    return Levels(
        f"Outcomes: {check.replace('_', ' ')}",
        f"Shares of {samples} samples{' of each' if sampled else ''}{of_all}.{'' if sampled else ' ' + SURE}",
        tuple(rows),
        "outcome",
        expected_as="in the reference" if sampled else "expected",
    )


def _with_band(level: Level, count: int, samples: int, cells: int) -> Level:
    """Return the panel line ``level`` with the confidence band of its true share.

    ``count`` of ``samples`` samples had the outcome of this line. The error probability holds for all ``cells`` bands
    together.
    """
    band = rate_sequence(count, samples, BANDS_MISS / cells)
    return level._replace(low=band.lower, high=band.upper)


def evidence_panel(check: str, course: Sequence[Sequence[Any]], alarm: float) -> EvidencePanel:
    """Return the panel that shows how the e-value of a check changed over the samples.

    ``course`` has pairs (number of samples, log10 of the e-value); ``alarm`` is the false-alarm probability.
    """
    points = tuple((int(samples), float(logarithm)) for samples, logarithm in course)
    said = f"A right subject ever reaches 10^{-log10(alarm):.2g} with probability {alarm:.2g} at most."
    return EvidencePanel(f"Evidence over time: {check.replace('_', ' ')}", said, points, -log10(alarm))


def acceptance_panels(rates: Sequence[Sequence[float]]) -> Iterator[Levels]:
    """Yield two panels: the probability that the first i drafts are all accepted, and the law of the accepted length.

    ``rates[i]`` has two probabilities that the first i + 1 drafts are all accepted: by the subject, and by an optimal
    rule.
    """
    said = "In the case that drafts most, enumerated; beside it, what an optimal rule reaches on the same drafts."
    first = tuple(Level(str(place), seen, best) for place, (seen, best) in enumerate(rates, start=1))
    yield Levels(
        "Acceptance by position",
        f"Probability that the first drafts are all accepted. {said}",
        first,
        "drafts",
        "is",
        "can be",
    )
    columns = [[1.0, *column, 0.0] for column in zip(*rates, strict=True)]
    lengths = zip(*([before - after for before, after in pairwise(column)] for column in columns), strict=True)
    rows = tuple(Level(str(length), seen, best) for length, (seen, best) in enumerate(lengths))
    yield Levels(
        "Law of the accepted length",
        f"Probability of each number of accepted drafts. {said}",
        rows,
        "accepted",
        "is",
        "can be",
    )


def accepted_panels(counts: Sequence[int]) -> Iterator[Levels]:
    """Yield panels of the reported numbers of accepted drafts: at least k in a sequence, and exactly k.

    ``counts[k]`` is the number of sequences with k accepted drafts. The first panel is left out if no draft was ever
    accepted.
    """
    samples = sum(counts)
    at_least = [sum(counts[place:]) for place in range(1, len(counts))]
    said = f"As reported for {samples} sequences. {SURE}"
    if at_least:
        yield Levels(
            "Acceptance by position",
            f"At least this many drafts accepted. {said}",
            _banded(at_least, samples, 1),
            "drafts",
        )
    exactly = f"Exactly this many drafts accepted. {said}"
    yield Levels("Law of the accepted length", exactly, _banded(counts, samples, 0), "accepted")


def _banded(counts: Sequence[int], samples: int, first: int) -> tuple[Level, ...]:
    return tuple(
        _with_band(Level(str(place), count / samples), count, samples, len(counts))
        for place, count in enumerate(counts, start=first)
    )


def distances_panel(rows: Sequence[Mapping[str, Any]]) -> Levels:
    """Return the panel that compares the observed total variations with the smallest detectable ones.

    It has a line for each sampled setting, a subject with its options and models. ``rows`` has the results of each
    setting as a mapping of JSON data.
    """
    levels = tuple(
        Level(f"{row['setting'].strip()}, against the {row['against']} law", row["tv_observed"], row["tv_detectable"])
        for row in rows
    )
    said = (
        "Total variation of the samples from the law, which is not zero for a right subject either, and the least that "
        "would have been refuted."
    )
    return Levels("Total variation of planned samples", said, levels, "setting", expected_as="would have been refuted")


def partings_panel(told: Sequence[Mapping[str, Any]]) -> Partings:
    """Return the panel of the first differences between greedy texts with and without speculation.

    A difference is a near-tie (the rounding of the two passes explains it) or a bug. ``told`` has JSON data of each
    difference: ``setting``, ``position``, the tokens ``plain`` and ``speculative``, the ``gap`` of their logits, its
    ``bound`` from rounding, ``near_tie``.
    """
    rows = tuple(
        Parting(
            str(item["setting"]),
            int(item["position"]),
            int(item["plain"]),
            int(item["speculative"]),
            float(item["gap"]),
            float(item["bound"]),
            bool(item["near_tie"]),
        )
        for item in told
    )
    said = (
        "The first new token at which speculation and the target alone differ. The gap is how far the farther of the "
        "two tokens lies below the target's largest logit. A near-tie is a gap that the rounding of the two passes "
        "explains; what is beyond it is a bug. Pictures are in powers of ten."
    )
    return Partings("Near-ties: where greedy texts part", said, rows)
