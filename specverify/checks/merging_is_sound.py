"""The decoder state holds all data that the next round uses: merged and unmerged enumeration give the same law.

Laws over several rounds merge equal states. If a state omitted data that matters, different states would merge and the
law would be wrong, so at sizes where every path can be followed the two laws must agree.
"""

from __future__ import annotations

from typing import Any

from specverify.base.verdict import Evidence, Examination
from specverify.checks.check import SEVERAL_ROUNDS, Check, Conditions, law_in, variants_in
from specverify.checks.compared_laws import differ
from specverify.checks.explaining.decoder_counterexamples import law_counterexample
from specverify.checks.open_ends import run_with_open_end
from specverify.laws.enumeration import program_law
from specverify.laws.law import Law, is_rational
from specverify.laws.paths import Path, outcomes_of
from specverify.laws.scenarios import Scenario
from specverify.subjects.subject import InScenario

OUT_OF_RUNS = (
    "the budget ran out before every path was followed: a loop that draws until a token is accepted, say, has too "
    "many; draw from the residual at once where it is examined, or leave this check out"
)


def examine(here: InScenario, conditions: Conditions) -> Examination:
    """Compare the law of whole decodes, enumerated path by path, with the law in which equal states are merged.

    ``conditions`` has the largest number of runs. ``here`` is the decoder in its scenario.
    """
    merged = law_in(here, conditions.runs)
    unmerged = _unmerged(here, conditions.runs)
    rational = is_rational(merged) and is_rational(unmerged)
    figures = {"runs": merged.runs, "unmerged_runs": unmerged.runs}
    if merged.missing > 0 or unmerged.missing > 0:
        return Examination(OUT_OF_RUNS, unknown=True, figures=figures)
    if differ(merged, unmerged):
        return Examination(
            "the state leaves out something the next round depends on",
            failed=True,
            rational=rational,
            counterexample=law_counterexample(here, merged.probabilities, unmerged.probabilities)
            if conditions.explained
            else None,
            figures=figures,
        )
    return Examination("merged and unmerged laws are equal", rational=rational, figures=figures)


def _unmerged(here: InScenario, runs: int) -> Law:
    """Return the law of whole decodes by ``here`` without merging, by at most ``runs`` runs.

    ``Law.missing`` is the probability of all other runs. ``Law.runs`` counts texts, not runs: if the decoder never
    reads its last token, this token is not drawn, and one run stands for a text with each possible last token.
    """
    ends = 0

    def count_ends(path: Path[Any]) -> None:
        nonlocal ends
        ends += len(outcomes_of(path.outcome))

    law = program_law(run_with_open_end(here.decoder, here.prompt), runs, on_path=count_ends)
    return law._replace(runs=ends)


def _every_path_in_reach(scenario: Scenario) -> bool:
    return scenario.vocabulary == 2 and scenario.horizon == SEVERAL_ROUNDS and not scenario.eos


CHECK = Check(
    name="merging_is_sound",
    summary="the state holds everything: merged and unmerged enumeration agree",
    claim=None,
    evidence=Evidence.EXACT,
    examines=(variants_in(_every_path_in_reach, examine),),
)
