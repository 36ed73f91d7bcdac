"""Verifiers that use a random number twice and have the right law hold, and say what they share."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks.draws_are_independent import CHECK
from specverify.run.verify import Checklist, run_check
from specverify.subjects.verifier import verifier_subject

RNG = np.random.default_rng(5)


def decided(coin, p, q, draft_tokens):
    """Return what a sampler emits whose coins are ``coin()``."""
    for i, token in enumerate(draft_tokens):
        if not coin() < p[i, token] / q[i, token]:
            rest = np.maximum(p[i] - q[i], 0) if (p[i] > q[i]).any() else p[i]
            return [*draft_tokens[:i], RNG.choice(len(rest), p=rest / rest.sum())]
    return [*draft_tokens, RNG.choice(p.shape[1], p=p[-1])]


def folded(turned):
    """Return the verifier whose coins are below a half, or ``turned`` from above it."""

    def coin():
        u = RNG.random()
        return u if u < 0.5 else turned(u)

    def verify(p, q, draft_tokens):
        return decided(coin, p, q, draft_tokens)

    return verify


@pytest.mark.thorough
def test_a_number_that_is_folded_holds_by_its_law_and_is_named():
    subject = verifier_subject(folded(lambda u: 1.5 - u), "folded", (1,))
    found = run_check(subject, CHECK, Checklist((CHECK,)))
    assert found.status is Status.HOLDS
    assert found.statement.endswith("and the law is nevertheless the promised one")
    assert found.figures["notes"] == [found.statement]


def test_a_number_that_is_folded_upon_itself_is_refuted_by_its_law():
    subject = verifier_subject(folded(lambda u: 1 - u), "folded", (1,))
    found = run_check(subject, CHECK, Checklist((CHECK,)))
    assert found.status is Status.REFUTED
    assert "the law is off by it: TV = " in found.counterexample.because[0]


@pytest.mark.thorough
def test_a_number_that_is_drawn_again_after_its_state_was_put_back_holds_by_its_law():
    def coin():
        state = RNG.bit_generator.state
        first = RNG.random() < 0.5
        RNG.bit_generator.state = state
        u = RNG.random()
        return u if first else 1.5 - u

    def verify(p, q, draft_tokens):
        return decided(coin, p, q, draft_tokens)

    found = run_check(verifier_subject(verify, "again", (1,)), CHECK, Checklist((CHECK,)))
    assert found.status is Status.HOLDS
    assert "draw from one state of a generator, and the law is" in found.figures["notes"][0]
