"""No token of target probability 0 comes out when a uniform is exactly 0, or the largest float below 1."""

from __future__ import annotations

from reference import Claim
from specverify.checks._observed import refuted
from specverify.checks.check import Check, Conditions
from specverify.checks.stop_law import cases, obstacle
from specverify.enumeration import program_law
from specverify.subjects.subject import Case
from specverify.verdict import Evidence, Examination

BOUNDARIES = {0.0: "exactly 0", 1.0: "the largest float below 1"}


def examine(case: Case, conditions: Conditions) -> Examination:
    """Give every uniform its smallest value, then its largest; other draws are enumerated."""
    assert case.program is not None
    supported = {new for new, mass in case.program.law().items() if mass > 0}
    runs = 0
    for uniform, said in BOUNDARIES.items():
        with case.program.open(forced_uniform=uniform) as program:
            law = program_law(program, conditions.runs)
        runs += law.runs
        outside = sorted(new for new, mass in law.probabilities.items() if mass > 0 and new not in supported)
        if outside:
            then = f"{outside[0]} comes out, which has probability 0 without speculation"
            return refuted(case.program, then, f"every uniform is {said}", {"runs": runs})
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
