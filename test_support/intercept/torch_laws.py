"""The exact law of a function that draws from torch."""

from __future__ import annotations

import torch

from specverify.intercept.torch.calls import answered_by, outcome_of
from specverify.laws.enumeration import program_law


def law_of(function):
    """Return the exact law of what ``function()`` returns (a tensor, a number or a bool)."""

    def program(draws):
        with answered_by(draws):
            answer = function()
            return outcome_of(answer.reshape(-1)) if isinstance(answer, torch.Tensor) else answer

    return program_law(program)


def close(law, expected):
    return law.probabilities.keys() == expected.keys() and all(
        abs(law.probabilities[outcome] - mass) < 1e-12 for outcome, mass in expected.items()
    )
