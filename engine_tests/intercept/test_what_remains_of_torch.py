"""Nothing remains of runs in which tensors were filled: arrays of random numbers would hide a ring from Python."""

from __future__ import annotations

import pytest
import torch
from objects_there import there

from specverify.intercept.answers import Answers
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.unknowns.uniform import NeedsValue
from specverify.laws.draws import Tape

WEIGHTS = torch.tensor([0.5, 0.25, 0.25])


def raced():
    return int((WEIGHTS / torch.empty(3).exponential_()).argmax())


def not_looked_at():
    torch.empty(3).uniform_()


def refused():
    torch.empty(3).exponential_().sum().item()


@pytest.mark.parametrize("program", [raced, not_looked_at, refused])
def test_the_answers_of_a_run_are_let_go(program):
    before = there(Answers)
    for _ in range(3):
        try:
            with answered_everywhere(Tape(0)):
                program()
        except NeedsValue:
            assert program is refused
    assert there(Answers) == before
