"""An answer that begins with the last token of the prompt is named, whatever the speculation does."""

from __future__ import annotations

import random

import pytest

from specverify.base.verdict import Status
from specverify.testing import check_engine


def decoding(begin):
    """Return a factory of engines of plain decoding, whose answer begins with ``begin(prompt)``."""

    def make(scenario):
        def decode(prompt):
            text = tuple(prompt)
            for _ in range(scenario.horizon):
                p = scenario.target(text)
                text += tuple(random.choices(range(len(p)), p))
            return [*begin(prompt), *text[len(prompt) :]]

        return decode

    return make


@pytest.mark.parametrize(
    ("begin", "status", "late"),
    [
        (lambda prompt: prompt[-1:], Status.REFUTED, True),
        (lambda prompt: (1,), Status.REFUTED, False),
        (lambda prompt: (), Status.HOLDS, False),
    ],
    ids=["the last token of the prompt", "another token", "nothing"],
)
def test_a_repeated_token_of_the_prompt_is_named(begin, status, late):
    (verdict,) = check_engine(decoding(begin), checks=["law_is_target"], on_fail=None, quick=True)
    fault = str(verdict.counterexample.fault) if verdict.counterexample else ""
    assert verdict.status is status
    assert fault.startswith("the answer begins with the last token of the prompt, 0") is late
