"""Each drafted token is accepted as often as losslessness allows: "always reject" is lossless too.

No lossless rule accepts a token d ~ q with probability above min(1, p(d)/q(d)). If each draft is decided by itself, the
first i drafts are all accepted with probability at most E prod min(1, p/q) over the draft's own law (Leviathan et al.
2211.17192, Theorem 3.5, for one token). A rule that decides several drafts together may accept more (block
verification, 2403.10444): no lossless rule keeps a text of i drafts more often than the smaller of its probabilities
under target and draft. A verifier of trees is compared with the best known rule for trees drawn in the same way
(``tree_acceptance``).

A verifier of arrays returns tokens and no acceptances, so its acceptances are inferred: all tokens but the last are
accepted drafts, and an answer equal to the drafts counts as accepted in full. If the last draft is rejected and its
replacement is the same token, the inferred acceptance is above that of the rule; the messages state the inference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specverify.base.figures import longer
from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks.check import Check, Conditions, slack
from specverify.checks.draft_is_honest import Drafting, drafting
from specverify.checks.explaining.counterexample_parts import described, or_none, readable
from specverify.checks.explaining.round_faults import fault_of_rounds
from specverify.checks.explaining.wording import apart, short_row
from specverify.checks.round_laws import first_rounds
from specverify.checks.tree_acceptance import examine_tree
from specverify.laws.paths import paths
from specverify.laws.rounding import floats_named
from specverify.reference import Claim, Draft, Tokens, accept_probability, one_hot
from specverify.reference.models import draft_model
from specverify.subjects.subject import InScenario

EQUAL_REPLACEMENT = "; a rejected draft whose replacement is the same token counts as accepted"
"""Ends the message if the inferred acceptance is above the optimum."""


def examine(drafting: Drafting, conditions: Conditions) -> Examination:
    """Compare, for each i, P(the first i drafts are accepted) with the largest value of any lossless rule.

    A smaller or larger probability refutes; if rounding may explain it, the result is unknown. Decoders of trees are
    passed to ``examine_tree``. ``conditions`` limits the enumeration, and ``drafting`` is a decoder in a scenario, with
    its drafting step.
    """
    situation, propose = drafting
    if situation.variant.best is not None:
        return examine_tree(situation, situation.variant.best, conditions.runs)
    target, runs = situation.task.target, 0
    rates: list[list[float]] = []
    for state, masses, count, epsilon, within in first_rounds(situation, conditions.runs):
        runs += count
        best: dict[int, Any] = {}
        texts: dict[Tokens, list[Any]] = {}
        for path in paths(lambda draws, state=state: propose(draws, state)):  # type: ignore[misc]
            runs += 1
            for i, mass, p in _prefix_acceptance(path.outcome, state.tokens, target):
                best[i] = best.get(i, 0) + path.weight * mass
                text = texts.setdefault(path.outcome.tokens[:i], [p, 0])
                text[1] += path.weight
        actual = dict.fromkeys(best, 0)
        for (_, accepted), mass in masses.items():
            for i in range(1, accepted + 1):
                actual[i] = actual.get(i, 0) + mass
        seen = [[float(actual[i]), float(best.get(i, 0))] for i in sorted(actual)]
        rates = longer(rates, seen)
        figures = {"runs": runs, "acceptance": seen}
        for i in sorted(actual):
            most = max(best.get(i, 0), sum(min(p, q) for text, (p, q) in texts.items() if len(text) == i))
            optimal = best.get(i, 0) if actual[i] < best.get(i, 0) else min(actual[i], most)
            distance = abs(actual[i] - optimal)
            if distance > slack(situation, 2 * i):
                result = _not_optimal(situation, state.tokens, i, actual[i], optimal, figures)
                return (
                    result
                    if distance > slack(situation, 2 * i, epsilon) + within
                    else _too_coarse(result, epsilon, within)
                )
    return Examination(
        "drafts are accepted as often as possible",
        rational=situation.rational,
        figures={"runs": runs, "acceptance": rates},
    )


def _prefix_acceptance(draft: Draft, prefix: Any, target: Any) -> list[tuple[int, Any, Any]]:
    """Return (i, a, b) for each i from 1 to the number of drafts.

    * a: P(the first i drafts are all accepted) if each draft is tested by itself.
    * b: P(the target emits the first i drafts).

    ``prefix`` is the text before the draft, and ``target`` maps a text to p.
    """
    result, product, said = [], 1, 1
    for i, token in enumerate(draft.tokens):
        p = target(prefix + draft.tokens[:i])
        pmf = draft.pmfs[i]
        product = product * accept_probability(p, one_hot(token, p) if pmf is None else pmf, token)
        said = said * p[token]
        result.append((i + 1, product, said))
    return result


def _not_optimal(
    situation: InScenario, tokens: Any, i: int, actual: Any, best: Any, figures: Mapping[str, Any]
) -> Examination:
    drafts = "first draft is" if i == 1 else f"first {i} drafts are"
    does, ought = apart(actual, best)
    named = or_none(fault_of_rounds, situation)
    inferred = situation.variant.intercepted is not None
    source = " (inferred from the emitted tokens)" if inferred else ""
    which = "draft 1 is" if i == 1 else f"drafts 1 to {i} are"
    fault = f"{which} accepted with probability {does}{source}, expected {ought}"
    if i == 1 and situation.variant.best is None:
        fault += " = sum of min(p, q)"
    equal = or_none(_chance_of_equal, situation, tokens) if i == 1 else None
    if equal is not None and abs(actual - equal) < slack(situation, 2):
        fault += f"; {does} = sum of p q, as if a token is drawn from p and the draft is kept where it is equal"
    elif named is not None and "accept" in named.parts:
        fault = named.sentence
    p, q = situation.task.target(tokens).tolist(), draft_model(situation.task)(tokens).tolist()
    rows = f"after {tokens}: p = {short_row(p)}   q = {short_row(q)}"
    statement = f"the {drafts} accepted with probability {readable(actual)}{source}, optimal is {readable(best)}"
    if inferred and actual > best:
        fault += EQUAL_REPLACEMENT
        statement += EQUAL_REPLACEMENT
    return Examination(
        statement,
        failed=True,
        rational=situation.rational,
        counterexample=Counterexample(let=(described(situation), rows), then=fault, fault=fault),
        figures=figures,
    )


def _chance_of_equal(situation: InScenario, tokens: Tokens) -> Any:
    """Return the probability that a draw from p and an independent draw from q give the same token.

    p and q are the rows of ``situation`` after the text ``tokens``.
    """
    p, q = situation.task.target(tokens), draft_model(situation.task)(tokens)
    return sum(one * other for one, other in zip(p.tolist(), q.tolist(), strict=True))


def _too_coarse(found: Examination, epsilon: float, within: float) -> Examination:
    """Turn the refutation ``found`` into an unknown result, because rounding may explain it.

    ``epsilon`` is the spacing of the subject's floats at 1. If probabilities are known only as intervals, ``within`` is
    the largest error that this causes; otherwise it is 0. Both are stated in the result.
    """
    bounds = f", or known no better: probabilities lie between bounds, up to {within:.1g} off" if within else ""
    said = f"{found.statement}; that may be rounding in {floats_named(epsilon)}{bounds}"
    return Examination(said, unknown=True, rational=False, figures=found.figures)


CHECK = Check(
    name="acceptance_is_optimal",
    summary="P(first i drafts accepted) is that of the optimal coupling",
    claim=Claim.OPTIMAL_COUPLING,
    evidence=Evidence.EXACT,
    examines=(drafting(examine),),
)
