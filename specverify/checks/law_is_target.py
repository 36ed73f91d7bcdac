"""The joint law of the new tokens is the target's law, over several rounds (2211.17192, Theorem 1)."""

from __future__ import annotations

from specverify.base.verdict import DoesNotApply, Evidence, Examination
from specverify.checks.check import (
    ONLY_SAMPLED,
    Check,
    Conditions,
    ExaminedPart,
    Need,
    by,
    in_all_scenarios,
    paths_of_program,
)
from specverify.checks.compared_laws import bearing_of, compare, law_of_opened, of_engine
from specverify.laws.paths import PROBES
from specverify.reference import Claim
from specverify.subjects.subject import EngineProgram, FewPaths, InScenario, Variant

MANY_PATHS = "it has many paths in each of its tables"
MOST_OF_ANY = 100
"""Most paths in one of the tables for engines with few paths. The first table decides whether an engine has few; it may
have more in another one, by a fault say."""
LIKE_PLAIN = (
    "{name}: its rows have other laws than in calls of their own, with speculation and without it alike: a row depends "
    "on its place or on the other rows, and speculation does not change that. If it should, because rows have "
    "parameters of their own, return Made(..., parameters=[...]), whose elements are passed to the rows"
)


def examine(situation: InScenario | EngineProgram, conditions: Conditions) -> Examination:
    """Compare the law of a decoder in a scenario, or of an engine, with the product of the target's conditionals.

    ``conditions`` limits the enumeration. ``situation`` is the decoder or the engine.
    """
    bearing = bearing_of(situation)
    expected, unexplained = bearing.target(), conditions._replace(explained=False)
    result = compare(bearing, unexplained, expected, "the target's")
    if not result.failed:
        return result
    alike = _as_without_speculation(situation, unexplained) if isinstance(situation, EngineProgram) else None
    return alike or compare(bearing, conditions, expected, "the target's")


def examine_if_few(here: FewPaths, conditions: Conditions) -> Examination:
    """Compare the law of an engine that has few paths; raise ``DoesNotApply`` if it has many.

    They may be many here, or in the first table. ``conditions`` is that of ``examine``.
    """
    for program, most in ((here.first, here.most), (here.program, MOST_OF_ANY)):
        if paths_of_program(program.open, most, PROBES) > most:
            raise DoesNotApply(MANY_PATHS)
    return examine(here.program, conditions)


def _as_without_speculation(program: EngineProgram, conditions: Conditions) -> Examination | None:
    """Return the unknown result of a batch that has the same law without speculation; None for other programs.

    ``program`` has another law than the target's. The expected law of a row is that of a call without speculation of
    its own. A row may differ from it because its parameters belong to its place in the batch. Then speculation changes
    nothing, so the batch is not refuted.
    """
    if program.plain is None or not program.in_batches:
        return None
    without = law_of_opened(program.plain, conditions.run_limit, conditions.jobs).probabilities
    result = compare(of_engine(program), conditions, without, "that without speculation")
    return None if result.failed else result._replace(statement=LIKE_PLAIN.format(name=program.name), unknown=True)


CHECK = Check(
    name="law_is_target",
    summary="the joint law of the output is the target's, by enumeration",
    claim=Claim.LOSSLESS,
    evidence=Evidence.EXACT,
    examines=(
        ExaminedPart(Variant, by(examine), ONLY_SAMPLED, (), in_all_scenarios),
        ExaminedPart(
            EngineProgram,
            by(examine),
            ONLY_SAMPLED,
            (Need(lambda _, program: program.target is None, ONLY_SAMPLED),),
        ),
        ExaminedPart(FewPaths, by(examine_if_few), ONLY_SAMPLED),
    ),
)
