"""Verifiers of logits that take a sampling parameter for another value; with the right ones they hold."""

from __future__ import annotations

import random

import numpy as np
import pytest

from reference import warped
from specverify.checks import Conditions, check_named
from specverify.laws.deep_scenarios import TRUNCATED
from specverify.run.quick import quick_cases
from specverify.subjects.forms import LOGITS
from specverify.subjects.verifier import verifier_subject

LAW = check_named("law_is_target")


def drawn(weights):
    return random.choices(range(len(weights)), weights)[0]


def verifier(taken):
    """Return a verifier of logits that applies ``taken(...)`` in place of the parameters that it is given."""

    def verify(target_logits, draft_logits, draft_tokens, temperature, top_k, top_p, min_p):
        given = {"temperature": temperature, "top_k": top_k or None, "top_p": top_p, "min_p": min_p or None}
        setting = given | taken(**given)

        def pmfs(logits):
            return [warped(lambda _, row=row: np.asarray(row), **setting)(()) for row in logits]

        p, q = pmfs(target_logits), pmfs(draft_logits)
        for place, token in enumerate(draft_tokens):
            if random.random() * q[place][token] >= p[place][token]:
                return [*draft_tokens[:place], drawn(np.maximum(p[place] - q[place], 0))]
        return [*draft_tokens, drawn(p[-1])]

    return verify


def as_given(**_):
    return {}


TAKEN = {
    "greedy below 0.5": lambda temperature, **_: {"temperature": 0} if temperature < 0.5 else {},
    "at most 1.5": lambda temperature, **_: {"temperature": min(temperature, 1.5)},
    "no top-p above 0.95": lambda top_p, **_: {"top_p": None} if top_p > 0.95 else {},
    "top-p below 0.5 is greedy": lambda top_p, **_: {"top_k": 1} if top_p < 0.5 else {},
    "no min-p below 0.2": lambda min_p, **_: {"min_p": None} if (min_p or 0) < 0.2 else {},
    "no top-k of most tokens": lambda top_k, **_: {"top_k": None} if (top_k or 0) > 6 else {},
    "no top-k beside top-p below 1": lambda temperature, top_p, **_: (
        {"top_k": None} if temperature < 1 and top_p < 1 else {}
    ),
}
"""Rule -> the parameters that a verifier takes in place of the given ones."""


def refuted(taken):
    """Return whether one of the quick cases of further settings refutes the verifier."""
    subject = verifier_subject(verifier(taken), "verify", (2,), LOGITS)
    chosen = quick_cases(subject.kind, LAW, LAW.cases(subject)).cases
    cases = [case for case in chosen if getattr(case.situation, "scenario", None) == TRUNCATED]
    assert cases
    return any(case.examine(Conditions(explained=False)).failed for case in cases)


@pytest.mark.parametrize("rule", TAKEN)
def test_another_value_of_a_parameter_is_refuted(rule):
    assert refuted(TAKEN[rule])


def test_the_given_values_hold():
    assert not refuted(as_given)
