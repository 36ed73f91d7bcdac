"""The joint law of the new tokens is the target's law, over several rounds (2211.17192, Theorem 1)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from specverify.base.verdict import Evidence, Examination
from specverify.checks.check import Case, Check, Conditions, needs_variants
from specverify.checks.compared_laws import LawBearing, compare, law_bearing
from specverify.reference import Claim
from specverify.subjects.subject import InScenario, Subject


def obstacle(subject: Subject) -> str | None:
    """Return why the check does not apply, or None: the draws of the subject must be enumerable."""
    return None if any(program.target is None for program in subject.programs) else needs_variants(subject)


def cases(subject: Subject) -> Iterator[Case]:
    """Yield every variant in every scenario, and every engine program that declares no other law, as cases."""
    for here, bearing in law_bearing(subject):
        if isinstance(here, InScenario) or bearing.declared is None:
            yield Case(subject, here, partial(examine, bearing))


def examine(bearing: LawBearing, conditions: Conditions) -> Examination:
    """Enumerate the law of a subject and compare it with the product of the target's conditionals."""
    return compare(bearing, conditions, bearing.target(), "the target's")


CHECK = Check(
    name="law_is_target",
    summary="the joint law of the output is the target's, by enumeration",
    claim=Claim.LOSSLESS,
    evidence=Evidence.EXACT,
    obstacle=obstacle,
    cases=cases,
)
