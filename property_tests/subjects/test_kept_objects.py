"""Engines that change what their caller keeps: prompts, the list of prompts, and answers of earlier calls."""

from __future__ import annotations

import random

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.testing import Made, check_engine

CHECKS = ["inputs_unchanged", "outputs_are_fresh"]


def text_after(scenario, prompt):
    """Return the new tokens after ``prompt``, each drawn from p."""
    text = tuple(prompt)
    while len(text) < len(prompt) + scenario.horizon:
        p = scenario.target(text)
        text += tuple(random.choices(range(len(p)), p))
    return list(text[len(prompt) :])


def copying(scenario):
    return lambda prompt: text_after(scenario, [*prompt])


def extending(scenario):
    def decode(prompt):
        begin = prompt.copy()
        prompt.extend(text_after(scenario, begin))
        return prompt[len(begin) :]

    return decode


def with_one_buffer(scenario):
    buffer = np.zeros(scenario.horizon, dtype=int)

    def decode(prompt):
        buffer[:] = text_after(scenario, prompt)
        return buffer

    return decode


def with_one_list(scenario):
    answer = []

    def decode(prompt):
        answer[:] = text_after(scenario, prompt)
        return answer

    return decode


def streaming(scenario):
    return lambda prompt: iter(text_after(scenario, prompt))


def batch(scenario):
    return Made(lambda prompts: [text_after(scenario, prompt) for prompt in prompts], batched=True)


def emptying_batch(scenario):
    def decode(prompts):
        answers = []
        while prompts:
            answers.append(text_after(scenario, prompts.pop(0)))
        return answers

    return Made(decode, batched=True)


def batch_in_one_array(scenario):
    rows = np.zeros((20, scenario.horizon), dtype=int)

    def decode(prompts):
        for row, prompt in enumerate(prompts):
            rows[row] = text_after(scenario, prompt)
        return rows[: len(prompts)]

    return Made(decode, batched=True)


@pytest.mark.parametrize(
    ("make", "refuted"),
    [
        (copying, []),
        (streaming, []),
        (batch, []),
        (extending, CHECKS[:1]),
        (emptying_batch, CHECKS[:1]),
        (with_one_buffer, CHECKS[1:]),
        (with_one_list, CHECKS[1:]),
        (batch_in_one_array, CHECKS[1:]),
    ],
)
def test_what_the_caller_keeps_stays_as_it_is(make, refuted):
    verdicts = [v for v in check_engine(make, quick=True, checks=CHECKS, on_fail=None) if v.check in CHECKS]
    assert [v.check for v in verdicts if v.status is Status.REFUTED] == refuted
    assert {v.status for v in verdicts} <= {Status.REFUTED, Status.HOLDS}
    assert len(verdicts) == len(CHECKS)
