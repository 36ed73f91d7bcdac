"""Greedy decoding is examined wherever the target's rows are one-hot, also by a parameter of the verifier."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.checks import Conditions, check_named
from specverify.subjects.forms import LOGITS
from specverify.subjects.verifier import verifier_subject


def pmfs(logits, temperature):
    if temperature == 0:
        return np.eye(logits.shape[-1])[logits.argmax(-1)]
    powers = np.exp((logits - logits.max(-1, keepdims=True)) / temperature)
    return powers / powers.sum(-1, keepdims=True)


def verifier_with(bonus_temperature):
    """Return a verifier whose bonus token has temperature 1 in greedy decoding, if ``bonus_temperature`` is 1."""
    generator = np.random.default_rng(0)

    def verify(target_logits, draft_logits, draft_tokens, temperature):
        p, q = pmfs(target_logits, temperature), pmfs(draft_logits, temperature)
        for i, token in enumerate(draft_tokens):
            if generator.random() * q[i, token] >= p[i, token]:
                left = np.maximum(p[i] - q[i], 0)
                row = left / left.sum() if left.sum() > 0 else p[i]
                return [*draft_tokens[:i], int(generator.choice(len(row), p=row))]
        last = pmfs(target_logits[-1], temperature or bonus_temperature)
        return [*draft_tokens, int(generator.choice(len(last), p=last))]

    return verify


def is_open(here):
    """Return whether rows are made one-hot by temperature 0 alone, and a bonus token is drawn."""
    return here.variant.label == "gamma=2 temperature=0" and here.scenario.shape == "equal"


def cases_of(verify):
    return check_named("greedy_is_argmax").cases(verifier_subject(verify, "verify", (2,), LOGITS))


@pytest.mark.parametrize(("bonus_temperature", "is_wrong"), [(0, False), (1, True)])
def test_a_bonus_token_that_is_sampled_at_temperature_0_is_no_argmax(bonus_temperature, is_wrong):
    cases = [case for case in cases_of(verifier_with(bonus_temperature)) if is_open(case.situation)]
    assert any(case.examine(Conditions()).failed for case in cases) is is_wrong


def test_the_cases_are_those_of_one_hot_scenarios_and_those_of_the_parameter():
    seen = {
        (case.situation.scenario.greedy, case.situation.variant.label.endswith("temperature=0"))
        for case in cases_of(verifier_with(0))
    }
    assert {(True, False), (True, True), (False, True)} <= seen
