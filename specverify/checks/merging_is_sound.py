"""The state holds everything the next round depends on: merged and unmerged enumeration give one law.

Laws over several rounds merge equal states. A state that leaves something out would merge what is different and give a
wrong law, so at sizes where every path can be followed the two must agree.
"""

from __future__ import annotations

from specverify.checks.check import Check, Conditions, case_law, exact_cases, needs_variants
from specverify.enumeration import program_law, whole_run
from specverify.explain import law_counterexample
from specverify.law import is_rational, total_variation
from specverify.rounding import of_enumeration
from specverify.subjects.subject import Case, case_decoder
from specverify.verdict import Evidence, Examination


def examine(case: Case, conditions: Conditions) -> Examination:
    """Enumerate the whole run path by path and compare with the law merged round by round."""
    assert case.scenario is not None
    merged = case_law(case, conditions.runs)
    unmerged = program_law(whole_run(case_decoder(case), case.scenario.prompt), conditions.runs)
    distance = total_variation(merged, unmerged.probabilities)
    rational = is_rational(merged) and is_rational(unmerged)
    bound = 0 if rational else sum(of_enumeration(law.rounding, law.runs) for law in (merged, unmerged))
    figures = {"runs": merged.runs, "unmerged_runs": unmerged.runs}
    if merged.missing > 0 or unmerged.missing > 0:
        return Examination("the budget ran out before every path was followed", unknown=True, figures=figures)
    if distance.high > bound:
        return Examination(
            "the state leaves out something the next round depends on",
            failed=True,
            rational=rational,
            counterexample=law_counterexample(case, merged.probabilities, unmerged.probabilities),
            figures=figures,
        )
    return Examination("merged and unmerged laws are equal", rational=rational, figures=figures)


CHECK = Check(
    name="merging_is_sound",
    summary="the state holds everything: merged and unmerged enumeration agree",
    claim=None,
    evidence=Evidence.EXACT,
    obstacle=needs_variants,
    cases=exact_cases(lambda scenario: scenario.vocabulary == 2 and scenario.horizon == 3 and not scenario.eos),
    examine=examine,
)
