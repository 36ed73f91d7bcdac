"""Verifiers of logits and of logarithms, recognised by the names of their parameters."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.run.verify import Checklist, run_check
from specverify.subjects.external import decode_subject
from specverify.subjects.logarithms import with_logarithms
from specverify.testing import SpeculationRefuted, check_verifier
from test_support.verifiers.one_round import decided, residual, unchanged_p

pytestmark = pytest.mark.usefixtures("named_checks_alone")


def softmax(logits):
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def of_logits(replace):
    def verify(target_logits, draft_logits, draft_tokens):
        accepted, token = decided(softmax(target_logits), softmax(draft_logits), draft_tokens, replace)
        return [*accepted, token]

    return verify


def of_logarithms(replace):
    def verify(target_logprobs, draft_logprobs, draft_tokens):
        accepted, token = decided(np.exp(target_logprobs), np.exp(draft_logprobs), draft_tokens, replace)
        return [*accepted, token]

    return verify


@pytest.mark.parametrize("subject", [of_logits, of_logarithms])
def test_the_names_of_parameters_state_what_a_verifier_takes(subject):
    check_verifier(subject(residual), checks=["law_is_target"], quick=True)
    with pytest.raises(SpeculationRefuted, match="replaced by a draw from p"):
        check_verifier(subject(unchanged_p), checks=["law_is_target"], quick=True)


@pytest.mark.parametrize("names", [("log_p", "log_q"), ("target_log_probs", "draft_log_probs"), ("logp", "logq")])
def test_names_of_logarithms(names):
    scope = {}
    exec(f"def verify({', '.join(names)}, draft_tokens): return {names[0]}", scope)
    rows = with_logarithms(scope["verify"])(np.array([[0.0, 1.0]]), np.array([[0.5, 0.5]]), [0])
    assert rows.tolist() == [[-np.inf, 0.0]]


@pytest.mark.parametrize("names", [("p", "q"), ("target_probs", "draft_probs"), ("login", "logq"), ("catalog", "logp")])
def test_other_names_take_probabilities(names):
    scope = {}
    exec(f"def verify({', '.join(names)}, draft_tokens): return {names[0]}", scope)
    assert with_logarithms(scope["verify"]) is scope["verify"]


def test_a_subject_of_the_command_line_takes_one_logarithm():
    subject = decode_subject(of_logarithms(residual), "mine:verify")
    law = run_check(subject, check_named("law_is_target"), Checklist((), quick=True))
    assert law.status is Status.HOLDS
