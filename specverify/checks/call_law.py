"""One call at the caller's own size has the law of the rule: which drafts are kept, and every token behind them.

The rule is that of speculative sampling (2211.17192, Algorithm 1). Given the drafts, a lossless program of another rule
may have another law; so what is outside of rounding refutes only a program that follows this rule on small rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference import Claim, Tokens
from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks._call_verdicts import Finding, compared, wrong_anyway
from specverify.checks._explain import shown
from specverify.checks.check import Check, Conditions, cases_of
from specverify.intercept.unknowns.deferred import NeedsValue
from specverify.laws.call_law import CallLaw, call_law
from specverify.subjects.subject import GivenCall, OpenedCall, Subject

SMALL = 5
"""The vocabulary at which it is found out which rule a program follows."""
ELSEWHERE = (
    "on rows of three tokens it does not follow the rule of speculative sampling either, so the law that it should have, "
    "given these drafts, is not known: check it without cases"
)


def obstacle(subject: Subject) -> str | None:
    """There must be calls."""
    return None if subject.calls else "no call was given"


def examine(given: GivenCall, conditions: Conditions) -> Examination:
    """Compute the law of the call and compare it with the rule's."""
    opened = given.open()
    law = law_of(opened, conditions.seed)
    wrong, figures = wrong_anyway(law, opened.rows), {}
    found = Finding(wrong or "", refuted=True)
    if wrong is None:
        found, figures = compared(law, opened.rows, opened.dtype)
    if found.of_rule and not follows_the_rule(opened, conditions.seed):
        found = Finding(f"{found.statement}; but {ELSEWHERE}", unknown=True)
    return Examination(
        found.statement if not (found.refuted or found.unknown) else f"{given.name}: {found.statement}",
        failed=found.refuted,
        unknown=found.unknown,
        rational=False,
        counterexample=Counterexample(described(given, opened), found.statement) if found.refuted else None,
        figures={**figures, "runs": law.runs, "missing": law.missing, "followed": law.sampled},
    )


def law_of(opened: OpenedCall, seed: int) -> CallLaw:
    """Return the law of a call; drafts are among the tokens that are followed."""
    return call_law(opened.run, opened.rows.vocabulary, opened.rows.drafts, (NeedsValue,), seed)


def follows_the_rule(opened: OpenedCall, seed: int) -> bool:
    """Return whether the program has the law of the rule on rows of a few tokens.

    They are rows of a small vocabulary, or where it does not run on that, of its own.
    """
    for vocabulary in (SMALL, opened.rows.vocabulary):
        try:
            return all(_follows(opened.alike(*row), seed) for row in _few_tokens(vocabulary, min(len(opened.rows.drafts), 2)))
        except NeedsValue:
            raise
        except Exception:  # noqa: BLE001, S112 - it is made for one vocabulary
            continue
    return False


def _follows(opened: OpenedCall, seed: int) -> bool:
    law = law_of(opened, seed)
    return not compared(law, opened.rows, opened.dtype)[0].refuted


def _few_tokens(vocabulary: int, gamma: int) -> list[tuple[Any, Any, Tokens]]:
    """Return rows of p and q in which three tokens are possible, away from the ends, and drafts."""
    found = []
    for weights in (((1, 2, 3), (3, 2, 1)), ((4, 1, 1), (1, 1, 4)), ((1, 1, 2), (2, 1, 1))):
        p, q = np.zeros((gamma + 1, vocabulary)), np.zeros((gamma, vocabulary))
        for row in range(gamma + 1):
            p[row, 1:4] = np.roll(weights[0], row)
            q[row : row + 1, 1:4] = np.roll(weights[1], row)
        drafts = tuple(1 + place for place in range(gamma))
        found.append((p / p.sum(-1, keepdims=True), q / q.sum(-1, keepdims=True), drafts))
    return found


def described(given: GivenCall, opened: OpenedCall) -> tuple[str, ...]:
    """Return what is looked at, in lines: the sizes, and p and q at the drafts."""
    rows, gamma = opened.rows, len(opened.rows.drafts)
    at = [
        f"draft {i + 1} is token {token}: p = {shown(float(rows.p[i].pmf[token]))}, q = {shown(float(rows.q[i].pmf[token]))}"
        for i, token in enumerate(rows.drafts)
    ]
    return (f"call {given.name!r}: vocabulary {rows.vocabulary}, gamma {gamma}, rows in {opened.dtype}", *at)


CHECK = Check(
    name="call_law",
    summary="one call at the caller's own vocabulary has the law of the rule, token by token",
    claim=Claim.LOSSLESS,
    evidence=Evidence.EXACT,
    obstacle=obstacle,
    cases=cases_of(lambda subject: subject.calls, examine),
)
