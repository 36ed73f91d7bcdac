"""Checks of an engine's promises other than the law of its tokens: values, seeds, batches, statistics, constraints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from specverify.base.verdict import Evidence
from specverify.checks.check import Check
from specverify.promises.known_values import Kind
from specverify.promises.statistics import statistics_check
from specverify.promises.values import values_check
from specverify.subjects.answering import Answering
from specverify.subjects.beside import STATISTICS

PROMISED: Final[Mapping[str, Evidence]] = {
    "values_match": Evidence.EQUAL,
    "statistics_match": Evidence.EQUAL,
    "seed_repeats": Evidence.STATISTICAL,
    "seed_as_plain": Evidence.STATISTICAL,
    "batch_is_alone": Evidence.STATISTICAL,
    "resume_continues": Evidence.STATISTICAL,
    "drafts_follow_the_text": Evidence.EQUAL,
    "constraint_is_kept": Evidence.EXACT,
    "ranks_agree": Evidence.STATISTICAL,
    "ranks_agree_by_gloo": Evidence.STATISTICAL,
}
"""Name of a check of a promise -> the strength of its evidence."""


def checks_of_returns(answerings: Sequence[Answering], returns: Mapping[str, Kind]) -> tuple[Check, ...]:
    """Return the checks of the values that an engine returns with its tokens.

    ``returns`` maps the name of each value to its promise, and ``answerings`` are the engine's programs.
    """
    values = {name: kind for name, kind in returns.items() if name not in STATISTICS}
    statistics = {name: kind for name, kind in returns.items() if name in STATISTICS}
    return (
        *((values_check(answerings, values),) if values else ()),
        *((statistics_check(answerings, statistics),) if statistics else ()),
    )
