"""Noise such as -log(-log(u + 1e-10) + 1e-10): an infinite number is avoided, and the law hardly changes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from specverify.base.verdict import Status, is_edge
from specverify.checks import Conditions, check_named
from specverify.run.verify import Checklist, run_check
from specverify.subjects.given_calls import calls_subject
from specverify.subjects.verifier import verifier_subject
from specverify.testing import hard_calls

RNG = np.random.default_rng()


def noise(size, dtype, summand):
    return -torch.log(-torch.log(torch.rand(size, dtype=dtype) + summand) + summand)


def of_numpy(weights):
    return int(np.argmax(np.log(np.maximum(weights, 1e-20)) - np.log(1e-10 - np.log(RNG.random(len(weights)) + 1e-10))))


def in_torch(dtype, summand):
    def drawn(weights):
        return int((torch.log(torch.as_tensor(weights).to(dtype)) + noise(len(weights), dtype, summand)).argmax())

    return drawn


def with_weights_of_at_least(least):
    return lambda weights: int(np.argmax(np.log(weights.astype(float) + least) + RNG.gumbel(size=len(weights))))


RIGHT = {
    "NumPy": of_numpy,
    "float64": in_torch(torch.float64, 1e-10),
    "float32": in_torch(torch.float32, 1e-10),
    "float32, 1e-8": in_torch(torch.float32, 1e-8),
}


def verifier(drawn, replaced_by=lambda p, q: np.maximum(p - q, 0)):
    def verify(p, q, draft_tokens):
        for place, token in enumerate(draft_tokens):
            if RNG.random() * q[place, token] >= p[place, token]:
                return [*draft_tokens[:place], drawn(replaced_by(p[place], q[place]))]
        return [*draft_tokens, drawn(p[-1])]

    return verify


def status_of(verify, check):
    tried = check_named(check)
    return run_check(verifier_subject(verify, "it"), tried, Checklist((tried,), quick=True)).status


@pytest.mark.parametrize("name", RIGHT)
def test_it_is_followed(name):
    assert status_of(verifier(RIGHT[name]), "law_is_target") is Status.HOLDS


@pytest.mark.parametrize("name", RIGHT)
def test_a_wrong_law_beside_it_is_refuted(name):
    assert status_of(verifier(RIGHT[name], lambda p, q: p), "law_is_target") is Status.REFUTED


def test_a_number_that_is_negative_too_often_is_refused():
    assert status_of(verifier(in_torch(torch.float32, 1e-5)), "law_is_target") is Status.UNKNOWN


def at_size(drawn, edge=1e-9, shape="mostly zero"):
    calls = [call for call in hard_calls(3000, 2) if call.shape == shape]
    conditions = Conditions(edge=edge)
    return run_check(calls_subject(verifier(drawn), "it", calls), check_named("call_law"), Checklist((), conditions))


@pytest.mark.parametrize("name", ["NumPy", "float32"])
def test_it_is_followed_at_a_large_vocabulary(name):
    assert at_size(RIGHT[name]).status is Status.HOLDS


def test_what_is_added_to_weights_of_0_refutes_unless_it_is_rare():
    """All tokens without weight together are drawn too often with 1e-10, and hardly ever with 1e-20."""
    often, rarely = (at_size(with_weights_of_at_least(each)) for each in (1e-10, 1e-20))
    assert often.status is Status.REFUTED
    assert not is_edge(often)
    assert rarely.status is Status.HOLDS
    (edge,) = rarely.figures["edges"]
    assert 0 < edge["probability"] < 1e-12
    assert "has target probability 0, when a draw falls on it: at most once in " in rarely.statement
    assert at_size(with_weights_of_at_least(1e-20), edge=0.0).status is Status.REFUTED
