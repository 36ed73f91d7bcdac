"""A method that is not lossless has exactly the law it declares; its total variation from p is reported."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from specverify.base.verdict import Evidence, Examination
from specverify.checks.check import Case, Check, Conditions
from specverify.checks.compared_laws import LawBearing, Promise, compare, law_bearing
from specverify.laws.law import Law, total_variation
from specverify.subjects.subject import Subject


def obstacle(subject: Subject) -> str | None:
    """Return why the check does not apply, or None: the subject must declare a law other than the target's."""
    declared = any(item.declared_law for item in subject.variants) or any(item.target for item in subject.programs)
    return None if declared else "it declares no law but the target's"


def cases(subject: Subject) -> Iterator[Case]:
    """Yield every variant with a declared law in every scenario, and every engine program with one, as cases."""
    for here, bearing in law_bearing(subject):
        if bearing.declared is not None:
            yield Case(subject, here, partial(examine, bearing, bearing.declared))


def examine(bearing: LawBearing, declared: Promise, conditions: Conditions) -> Examination:
    """Compare the law with the declared one.

    The figure ``bias`` is the declared law's total variation from the target's.
    """
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
