"""Output ends where plain output ends: it is cut at the first stop, regardless of the rest of the draft block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specverify.base.verdict import Evidence, Examination
from specverify.checks.check import Check, Conditions, ExaminedPart, by
from specverify.checks.compared_laws import enumerated
from specverify.checks.observed_runs import refuted
from specverify.reference import Tokens
from specverify.subjects.subject import EngineProgram


def examine(program: EngineProgram, conditions: Conditions) -> Examination:
    """Compare the end of every output with the ends that are possible without speculation.

    ``conditions`` limits the enumeration. ``program`` is the engine.
    """
    law, promised = enumerated(program, conditions), program.law()
    stops = stops_of(promised)
    figures = {"runs": law.runs}
    for new, mass in sorted(law.probabilities.items()):
        stop = first_stop(new, stops)
        if mass > 0 and stop is not None:
            then = f"output should stop after {new[:stop]}, but continues to {new}"
            return refuted(program, then, f"with probability {float(mass):.3g}", figures)
        if mass > 0 and is_unfinished(new, stops):
            then = f"output stops after {new}, where nothing stops it without speculation"
            return refuted(program, then, f"with probability {float(mass):.3g}", figures)
    return Examination("every output ends where plain output ends", rational=False, figures=figures)


def stops_of(promised: Mapping[Tokens, Any]) -> frozenset[Tokens]:
    """Return every output that is possible without speculation; ``promised`` is their law."""
    return frozenset(new for new, mass in promised.items() if mass > 0)


def first_stop(new: Tokens, stops: frozenset[Tokens]) -> int | None:
    """Return the length of the shortest beginning of ``new`` that is in ``stops``, and shorter than ``new``; else None.

    ``stops`` are the possible outputs without speculation, so ``new`` should have stopped there.
    """
    return next((length for length in range(len(new)) if new[:length] in stops), None)


def is_unfinished(new: Tokens, stops: frozenset[Tokens]) -> bool:
    """Return whether ``new`` is the beginning of a longer output in ``stops``."""
    return any(stop[: len(new)] == new != stop for stop in stops)


CHECK = Check(
    name="stop_law",
    summary="output ends exactly where it ends without speculation: length, end of sequence, stop strings",
    claim=None,
    evidence=Evidence.EXACT,
    examines=(ExaminedPart(EngineProgram, by(examine), "it is no engine; see eos_is_final and horizon_is_respected"),),
)
