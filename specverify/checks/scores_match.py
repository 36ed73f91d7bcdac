"""Scores, logits and similar values returned with the tokens equal those of the same call without speculation."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from specverify.base.verdict import Evidence
from specverify.checks.check import Check
from specverify.checks.observed_runs import Observable, Run, Seen, examine_runs, seen_in, watched
from specverify.reference import Tokens
from specverify.subjects.subject import Watch

ROUNDING = 2.0**-20
"""Largest difference, relative to the largest value, that counts as rounding: eight units in the last place of float32,
the dtype in which libraries return scores."""
Expected = Mapping[Tokens, Mapping[str, Any]]
"""The values that a call returns at each position. ``expected[new][name]`` is the value called ``name``, such as the
logits, at the position after the new tokens ``new``."""


def fault(_: Seen, run: Run, observable: Observable) -> str | None:
    """Describe the values of a run, such as log-probabilities, that differ from those of a plain call; None if none do.

    Values after the same tokens are compared; the first difference of each value is described. ``observable`` is the
    observed engine.
    """
    return "; ".join(_differences(run, observable).values()) or None


def _differences(run: Run, observable: Observable) -> dict[str, str]:
    """Return name of a value -> description of its first difference in ``run`` from a plain call.

    Values without a difference are left out. ``observable`` is the observed engine.
    """
    expected = _plain(observable.watch)
    names = sorted({name for entries in expected.values() for name in entries})
    return {name: told for name in names if (told := _first_difference(name, run, expected))}


def _first_kind(run: Run, observable: Observable) -> str:
    return next(iter(_differences(run, observable)))


def _first_difference(name: str, run: Run, expected: Expected) -> str | None:
    returned, new = run.seen.returned.get(name, ()), run.ends[0][0]
    if len(returned) != len(new):
        return f"{len(returned)} entries of {name} are returned for {len(new)} new tokens, expected one each"
    for position, value in enumerate(returned):
        plain = expected.get(new[:position], {}).get(name)
        result = None if plain is None else _difference(value, plain)
        if result:
            return f"{name} of new token {position} {result}"
    return None


@lru_cache(maxsize=4)
def _plain(watch: Watch) -> Expected:
    """Return the scores, logits and similar values that the engine returns if it decodes without speculation.

    The result has these values by name, for each text that was recorded without speculation and each of its positions
    (``Expected``). ``watch`` opens the engine with its recorded runs.
    """
    result: dict[Tokens, Mapping[str, Any]] = {}
    for run in seen_in(watch).plain:
        new = run.ends[0][0]
        for position in range(len(new)):
            result[new[:position]] = {name: entries[position] for name, entries in run.seen.returned.items()}
    return result


def _difference(value: Any, plain: Any) -> str | None:
    if value.shape != plain.shape:
        return f"have shape {value.shape}, expected {plain.shape}"
    finite = np.isfinite(plain)
    if (finite != np.isfinite(value)).any():
        return "are finite where a plain call is not, or the other way about"
    off = np.abs(np.where(finite, value, 0) - np.where(finite, plain, 0)).max(initial=0)
    if off > ROUNDING * max(1.0, np.abs(plain[finite]).max(initial=0)):
        return f"differ by {off:.2g} from a plain call"
    return None


CHECK = Check(
    name="scores_match",
    summary="returned scores, logits, hidden states and attentions are those of a call without speculation",
    claim=None,
    evidence=Evidence.EQUAL,
    examines=(
        watched("returned", examine_runs(fault, "everything returned is what a plain call returns", _first_kind)),
    ),
)
