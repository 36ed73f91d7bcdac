"""No emitted token has target probability 0 at its position.

Rounding can give an impossible token a small probability, by underflow or at the end of a cumulated pmf. Up to this
probability (``rounding.left_on_nothing``) such a token is no fault. A more probable
one, below ``Conditions.edge`` given the text before it, is a note, as that of ``log(residual + 1e-10)``. Another check
examines the extreme random numbers.
"""

from __future__ import annotations

from specverify.base.verdict import Evidence
from specverify.checks.check import Check, variants_in
from specverify.checks.explaining.decoder_counterexamples import impossible_token
from specverify.checks.outcome_sets import examine_outcomes
from specverify.laws.rounding import left_on_nothing
from specverify.reference import Claim, Task, Tokens
from specverify.subjects.emitted import no_token


def fault(task: Task, prompt: Tokens, new: Tokens) -> str | None:
    """Describe the first of the new tokens ``new`` that is no token or has p = 0; None if there is none.

    The target of ``task`` gives p, after ``prompt`` and the new tokens before.
    """
    for position, token in enumerate(new):
        p = task.target(prompt + new[:position])
        wrong = no_token(token, len(p))
        if wrong:
            return f"token {wrong}, at position {position}"
        if not p[token] > 0:
            return f"token {token} at position {position} has target probability 0"
        if token in task.eos:
            return None
    return None


CHECK = Check(
    name="tokens_are_supported",
    summary="no token of target probability 0 is ever emitted",
    claim=Claim.SUPPORTED,
    evidence=Evidence.EXACT,
    examines=(
        variants_in(
            lambda scenario: scenario.shape in {"zeros", "disjoint", "point_target", "point_draft"},
            examine_outcomes(
                fault,
                "every token has positive target probability",
                forgives=left_on_nothing,
                cause=impossible_token,
                of_tokens=True,
            ),
        ),
    ),
)
