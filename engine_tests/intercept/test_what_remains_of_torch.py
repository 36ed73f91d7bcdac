"""Nothing remains of runs in which tensors were filled: arrays of random numbers would hide a ring from Python."""

from __future__ import annotations

import gc
from contextlib import suppress

import torch

from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import NeedsValue
from specverify.intercept.streams import Answers
from specverify.laws.draws import Tape

WEIGHTS = torch.tensor([0.5, 0.25, 0.25])


def raced():
    return int((WEIGHTS / torch.empty(3).exponential_()).argmax())


def not_looked_at():
    torch.empty(3).uniform_()


def refused():
    torch.empty(3).exponential_().sum().item()


def answers_there():
    gc.collect()
    return sum(type(item) is Answers for item in gc.get_objects())


def test_the_answers_of_a_run_are_let_go():
    before = answers_there()
    for program in (raced, not_looked_at, refused):
        with suppress(NeedsValue), answered_everywhere(Tape(0)):
            program()
    assert answers_there() == before
