"""The figures (counts and measurements) of checks, and how the figures of several cases are merged.

Figures that are fields of ``verdict.Verdict`` are not merged here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from specverify.base.edges import merged_edges


class Figure(NamedTuple):
    """A count or measurement of a check: its meaning in words, and the function that merges two of its values."""

    meaning: str
    merged: Callable[[Any, Any], Any]
    """``merged(one, other)`` combines the values of two cases, for example by sum, concatenation, maximum or logical
    or."""


def _counted(meaning: str) -> Figure:
    return Figure(meaning, operator.add)


def _largest(meaning: str) -> Figure:
    return Figure(meaning, max)


def longer(one: Any, other: Any) -> Any:
    """Return the longer of the lists ``one`` and ``other``; ``one`` if they have the same length."""
    return one if len(one) >= len(other) else other


def each_once(one: Any, other: Any) -> Any:
    """Return the list ``one``, followed by the elements of the list ``other`` that are not in ``one``."""
    return [*one, *(item for item in other if item not in one)]


FIGURES: Mapping[str, Figure] = {
    "runs": _counted("runs of the subject"),
    "unmerged_runs": _counted("runs of the subject where no two states were merged"),
    "samples": _counted("outcomes drawn"),
    "pairs": _counted("pairs of texts that should be equal"),
    "followed": _counted("outcomes of draws over a real vocabulary that were read, drawn and followed"),
    "replays": _counted("runs with the same draws and other generator states, times and system bytes"),
    "coupled_runs": _counted(
        "plain runs of the program, each paired with an examined run with the same random numbers"
    ),
    "fed_runs": _counted("paths whose random numbers were given to the plain program"),
    "coupled_ties": _counted("such pairs that ended differently at a comparison that rounding may decide either way"),
    "probe": _counted("calls that draw without interception: a list"),
    "rows": _counted("the tests of a sample: a list"),
    "activity": _counted("how much was drafted and accepted: a list of sentences"),
    "notes": Figure("notes about a subject, whatever the verdict: a list of sentences", each_once),
    "partings": _counted(
        "where greedy texts first differ, with the gap of the logits and the gap that rounding explains: a list"
    ),
    "draws": _largest("decisions on one path"),
    "outcomes": _largest("outcomes of one law"),
    "missing": _largest("probability that was not enumerated"),
    "tv": _largest("total variation from the expected law, at most"),
    "bias": _largest("total variation of the declared law from the target's"),
    "rounding": _largest("total variation that rounding can make"),
    "within": _largest("total variation due to probabilities that are known only between bounds"),
    "rounds": _largest("rounds on one path"),
    "rounds_of_two": _largest("rounds on one path that drafted two tokens or more"),
    "gamma": _largest("tokens drafted in one round"),
    "new_tokens": _largest("new tokens of a text whose states were merged by its last tokens"),
    "positions": _largest("positions at which something was drafted"),
    "tv_detectable": _largest("total variation that the samples would have shown"),
    "tv_observed": _largest("total variation of the samples from the law"),
    "miss": _largest("probability that the fault searched for would have been missed"),
    "acceptance": Figure(
        "P(first i drafts accepted) and its largest possible value, in the case with most drafts: a list", longer
    ),
    "edge": _largest("upper bound on the probability per draft of the edge that refutes; only for edges"),
    "edges": Figure("edges that are less likely than those that refute: a list", merged_edges),
    "function_of_draws": Figure(
        "whether the same draws give the same output; present only if they do not", operator.and_
    ),
}
"""Name -> description and merging rule of each figure of an ``Examination``."""


def merged_figures(figures: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures of several cases as one mapping: name -> merged value.

    Raises ``ValueError`` for a figure whose name ``FIGURES`` does not declare.
    """
    total: dict[str, Any] = {}
    for result in figures:
        for name, value in result.items():
            if name not in FIGURES:
                raise ValueError(f"there is no figure {name!r}, expected one that specverify.base.figures declares")
            total[name] = FIGURES[name].merged(total[name], value) if name in total else value
    return total
