"""Hints about engines that fail: a batch of one length, and look-up errors that have another cause."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from specverify.subjects.alphabet_hint import alphabet_hint
from specverify.subjects.lengths_hint import lengths_hint
from specverify.testing import Made, UnusableSubject, check_engine

RNG = np.random.default_rng()


def decoded(scenario: Any, prompts: Any) -> list[list[int]]:
    """Return new tokens for each prompt, drawn from the target's rows without speculation."""
    rows = []
    for prompt in prompts:
        text = list(prompt)
        for _ in range(scenario.horizon):
            row = scenario.target(tuple(text))
            text.append(int(RNG.choice(len(row), p=row)))
        rows.append(text[len(prompt) :])
    return rows


def of_one_length(scenario: Any) -> Made:
    return Made(lambda prompts: decoded(scenario, np.array(prompts).tolist()), batched=True)


def of_any_length(scenario: Any) -> Made:
    return Made(lambda prompts: decoded(scenario, prompts), batched=True)


def of_one_prompt(scenario: Any) -> Made:
    return Made(lambda prompt: decoded(scenario, [prompt])[0])


def test_a_batch_of_one_length_is_told_the_way_out() -> None:
    with pytest.raises(UnusableSubject) as caught:
        check_engine(of_one_length, checks=["law_is_target"], quick=True)
    assert "It decodes a batch of prompts of one length, and raises ValueError (" in str(caught.value)


@pytest.mark.parametrize("make", [of_any_length, of_one_prompt])
def test_other_engines_get_no_hint(make: Any) -> None:
    assert lengths_hint(make) == ""


def test_an_engine_that_fails_for_every_batch_gets_no_hint() -> None:
    assert lengths_hint(lambda scenario: Made(lambda prompts: 1 / 0, batched=True)) == ""


def test_an_error_of_some_decodes_is_no_sign_of_the_lengths() -> None:
    """Here it is raised for the first batch whose last prompt is (0,)."""
    failed = []

    def make(scenario: Any) -> Made:
        def decode(prompts: Any) -> list[list[int]]:
            if tuple(prompts[-1]) == (0,) and not failed:
                failed.append(True)
                raise KeyError(1)
            return decoded(scenario, prompts)

        return Made(decode, batched=True)

    assert lengths_hint(make) == ""


def test_an_index_error_that_a_larger_vocabulary_only_makes_rarer_is_no_sign_of_it() -> None:
    def make(scenario: Any) -> Any:
        def decode(prompt: Any) -> list[int]:
            if random.random() < 1 / scenario.vocabulary:
                raise IndexError("of another cause")
            return decoded(scenario, [prompt])[0]

        return decode

    assert alphabet_hint(make) == ""
