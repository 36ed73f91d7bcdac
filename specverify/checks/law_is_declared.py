"""A method that is not lossless has exactly the law it declares, and that law is not the target's."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from specverify.base.verdict import Evidence, Examination
from specverify.checks.check import Case, Check, Conditions
from specverify.checks.compared_laws import LawBearing, Promise, compare, law_bearing
from specverify.laws.law import Law, total_variation
from specverify.subjects.subject import Subject


def obstacle(subject: Subject) -> str | None:
    """The subject must declare a law."""
    declared = any(item.declared_law for item in subject.variants) or any(item.target for item in subject.programs)
    return None if declared else "it declares no law but the target's"


def cases(subject: Subject) -> Iterator[Case]:
    """Return every variant with a declared law in every scenario, and every engine program with one."""
    for here, bearing in law_bearing(subject):
        if bearing.declared is not None:
            yield Case(subject, here, partial(examine, bearing, bearing.declared))


def examine(bearing: LawBearing, declared: Promise, conditions: Conditions) -> Examination:
    """Compare the law with the declared one; the figures hold its total variation from the target's law."""
    law = declared()
    result = compare(bearing._replace(logits=None), conditions, law, "the declared one")
    bias = total_variation(Law(law), bearing.target()).low
    return result._replace(figures={**result.figures, "bias": float(bias)})


CHECK = Check(
    name="law_is_declared",
    summary="a method with a declared bias has exactly its declared law",
    claim=None,
    evidence=Evidence.EXACT,
    obstacle=obstacle,
    cases=cases,
)
