"""A call with the user's own p, q and drafts has the law of the rule: accepted drafts, and the token after them.

The rule is speculative sampling (2211.17192, Algorithm 1). A lossless program can follow another rule, and then have
another law given the drafts. So if the law of the call differs from the rule by more than rounding, the program is also
run on small rows. The program is refuted in two cases: on small rows it follows the rule; or, with drafts drawn from q,
its output does not have the target's law there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specverify.base.edges import edge_of
from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks.call_verdicts import Finding, compared, impossible_mass, wrong_anyway
from specverify.checks.calls_at_size import described, follows_the_rule, law_of, wrong_on_few_tokens
from specverify.checks.check import Check, Conditions, ExaminedPart, by
from specverify.checks.outcome_sets import ON_ONE
from specverify.reference import Claim
from specverify.subjects.subject import GivenCall

ELSEWHERE = (
    "on rows of three tokens it does not follow the rule of speculative sampling either, so the law that it should "
    "have, given these drafts, is not known: check it without cases"
)


def examine(given: GivenCall, conditions: Conditions) -> Examination:
    """Compare the law of the tokens that the call ``given`` emits with that of speculative sampling.

    A result that is wrong under every rule refutes, or becomes a note if it is less probable than ``conditions.edge``.
    If only the law differs, the program is also run on small rows, with three possible tokens:

    * It follows speculative sampling there: refuted.
    * It misses the target's law there: refuted.
    * Otherwise: unknown, because it may follow another lossless rule.

    ``conditions`` also has the seed of the runs.
    """
    opened = given.open()
    law = law_of(opened, conditions.seed)
    wrong = wrong_anyway(law, opened.rows, conditions.edge)
    rare = None if wrong else wrong_anyway(law, opened.rows)
    figures: Mapping[str, Any]
    result, figures = (Finding(wrong, refuted=True), {}) if wrong else compared(law, opened.rows, opened.dtype)
    if rare is not None:
        figures = {**figures, "edges": [edge_of(f"{given.name}: {rare}", ON_ONE, impossible_mass(law, opened.rows))]}
    if result.of_rule and not follows_the_rule(opened, conditions.seed):
        result = _of_another_rule(result, wrong_on_few_tokens(opened, conditions.seed))
    return Examination(
        result.statement if not (result.refuted or result.unknown) else f"{given.name}: {result.statement}",
        failed=result.refuted,
        unknown=result.unknown,
        rational=False,
        counterexample=Counterexample(described(given, opened), result.statement) if result.refuted else None,
        figures={**figures, "runs": law.runs, "missing": law.missing, "followed": law.sampled},
    )


def _of_another_rule(found: Finding, wrong: str) -> Finding:
    """Return the result for a program that follows speculative sampling neither in the call nor on small rows.

    ``found`` states how the call differs. ``wrong`` describes how the program misses the target's law on small rows: a
    refutation. If it is "", the result is unknown.
    """
    if wrong:
        return Finding(f"{found.statement}; and on rows of three tokens, {wrong}", refuted=True)
    return Finding(f"{found.statement}; but {ELSEWHERE}", unknown=True)


CHECK = Check(
    name="call_law",
    summary="one call at the caller's own vocabulary has the law of the rule, token by token",
    claim=Claim.LOSSLESS,
    evidence=Evidence.EXACT,
    examines=(ExaminedPart(GivenCall, by(examine), "no call was given"),),
)
