"""A token with p = 0 that is emitted very rarely is a note; a more probable one refutes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from specverify.base.verdict import Status, Verdict
from specverify.checks import Conditions, check_named
from specverify.run.verify import Checklist, run_check
from specverify.subjects.verifier import verifier_subject

RNG = np.random.default_rng()
CHECK = check_named("tokens_are_supported")


def with_a_summand(summand: float) -> Callable[..., Any]:
    """Return a verifier that adds a small number to the residual before it draws from it."""

    def verify(p: Any, q: Any, draft_tokens: Any) -> list[int]:
        for i, token in enumerate(draft_tokens):
            if RNG.random() * q[i, token] >= p[i, token]:
                left = np.maximum(p[i] - q[i], 0) + summand
                return [*draft_tokens[:i], int(RNG.choice(len(left), p=left / left.sum()))]
        return [*draft_tokens, int(RNG.choice(len(p[-1]), p=p[-1]))]

    return verify


def verdict_of(summand: float, edge: float) -> Verdict:
    """Return the verdict on the tokens that the verifier with this ``summand`` emits."""
    subject = verifier_subject(with_a_summand(summand), "it")
    return run_check(subject, CHECK, Checklist((CHECK,), Conditions(edge=edge)))


def test_a_rare_token_without_mass_is_a_note_with_its_probability() -> None:
    verdict = verdict_of(1e-10, 1e-9)
    assert verdict.status is Status.HOLDS
    (edge,) = verdict.figures["edges"]
    assert 1e-11 <= edge["probability"] < 1e-9
    assert "has target probability 0, when a draw falls on it: at most once in " in verdict.statement


@pytest.mark.parametrize(("summand", "edge"), [(1e-10, 0.0), (1e-10, 1e-12), (1e-8, 1e-9)])
def test_a_token_without_mass_that_is_not_rare_enough_refutes(summand: float, edge: float) -> None:
    assert verdict_of(summand, edge).status is Status.REFUTED
