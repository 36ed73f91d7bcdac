"""No token of target probability 0 comes out when a uniform is exactly 0, or the largest float below 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from reference import Claim, Tokens
from specverify.checks._observed import refuted
from specverify.checks.check import Check, Conditions
from specverify.checks.stop_law import cases, obstacle
from specverify.enumeration import program_law
from specverify.law import Law
from specverify.subjects.subject import Case, EngineProgram
from specverify.verdict import Evidence, Examination

BOUNDARIES = {0.0: "exactly 0", 1.0: "the largest float below 1"}


class AtBoundary(NamedTuple):
    """What comes out when every uniform has one value."""

    uniform: float
    said: str
    law: Law
    outside: list[Tokens]
    """Outcomes that have probability 0 without speculation."""


def at_boundaries(program: EngineProgram, runs: int) -> Iterator[AtBoundary]:
    """Give every uniform its smallest value, then its largest, and enumerate the other draws."""
    supported = {new for new, mass in program.law().items() if mass > 0}
    for uniform, said in BOUNDARIES.items():
        with program.open(forced_uniform=uniform) as run:
            law = program_law(run, runs)
        outside = sorted(new for new, mass in law.probabilities.items() if mass > 0 and new not in supported)
        yield AtBoundary(uniform, said, law, outside)


def examine(case: Case, conditions: Conditions) -> Examination:
    """Give every uniform its smallest value, then its largest; other draws are enumerated."""
    assert case.program is not None
    runs = 0
    for found in at_boundaries(case.program, conditions.runs):
        runs += found.law.runs
        if found.outside:
            then = f"{found.outside[0]} comes out, which has probability 0 without speculation"
            return refuted(case.program, then, f"every uniform is {found.said}", {"runs": runs})
    return Examination("nothing forbidden comes out", rational=False, figures={"runs": runs})


CHECK = Check(
    name="support_at_boundary_draws",
    summary="no forbidden token comes out when uniforms are 0 or the largest float below 1",
    claim=Claim.SUPPORTED,
    evidence=Evidence.EXACT,
    obstacle=obstacle,
    cases=cases,
    examine=examine,
)
