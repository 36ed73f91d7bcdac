"""A buffer that holds outcomes, is written to as usual, and holds outcomes again: a static cache, a line of tokens."""

from __future__ import annotations

import pytest
import torch

from test_support.intercept.torch_laws import close, law_of

P = torch.tensor([0.25, 0.75], dtype=torch.float64)
THIRD = torch.arange(6) == 2
ONE = torch.tensor([1.0], dtype=torch.float64)
AT = torch.tensor([2])


def drawn():
    return torch.multinomial(P, 1).double()


AS_IT_IS = {
    "copy_": lambda buffer: buffer[2:3].copy_(ONE),
    "index_copy_": lambda buffer: buffer.index_copy_(0, AT, ONE),
    "scatter_": lambda buffer: buffer.scatter_(0, AT, 1.0),
    "index_fill_": lambda buffer: buffer.index_fill_(0, AT, 1.0),
    "index_put_": lambda buffer: buffer.index_put_((AT,), ONE),
    "masked_fill_": lambda buffer: buffer.masked_fill_(THIRD, 1.0),
    "masked_scatter_": lambda buffer: buffer.masked_scatter_(THIRD, ONE),
    "fill_": lambda buffer: buffer[2:].fill_(1.0),
    "add_": lambda buffer: buffer[2:3].add_(1.0),
    "clamp_": lambda buffer: buffer.clamp_(0, 1),
    "out": lambda buffer: torch.add(buffer[2:3], 1.0, out=buffer[2:3]),
    "requires_grad_": lambda buffer: buffer.requires_grad_(False),
}
OTHERWISE = {
    "zero_": (lambda buffer: buffer.zero_(), lambda _: 0),
    "fill_": (lambda buffer: buffer[:1].fill_(1.0), lambda _: 1),
    "mul_": (lambda buffer: buffer.mul_(3.0), lambda token: 3 * token),
    "rsub": (lambda buffer: buffer.copy_(1.0 - buffer), lambda token: 1 - token),
    "roll": (lambda buffer: buffer.copy_(buffer.roll(1)), lambda _: 0),
}


def written_between(write, looked, view=False):
    """Return what stands at the first two places, one drawn before ``write`` and one after."""
    buffer = torch.zeros(6, dtype=torch.float64)
    shown = buffer[:2] if view else buffer
    buffer[0:1] = drawn()
    if looked:
        buffer[0].item()
    write(buffer)
    buffer.index_copy_(0, torch.tensor([1]), drawn())
    return tuple(map(int, shown[:2].tolist()))


def expected(first):
    law = {}
    for one in range(2):
        for other in range(2):
            outcome = (first(one), other)
            law[outcome] = law.get(outcome, 0) + float(P[one] * P[other])
    return law


@pytest.mark.parametrize("looked", [False, True], ids=["open", "looked at"])
@pytest.mark.parametrize("write", AS_IT_IS.values(), ids=AS_IT_IS)
def test_what_is_written_elsewhere_leaves_the_outcome(write, looked):
    assert close(law_of(lambda: written_between(write, looked, view=looked)), expected(lambda token: token))


@pytest.mark.parametrize("looked", [False, True], ids=["open", "looked at"])
@pytest.mark.parametrize(("write", "first"), OTHERWISE.values(), ids=OTHERWISE)
def test_what_is_written_over_the_outcome_stands_there(write, first, looked):
    assert close(law_of(lambda: written_between(write, looked, view=not looked)), expected(first))


def copied_and_looked_at(look):
    """Write into a copy of what was drawn, of which every number is known, after ``look`` has read it."""
    work = drawn().repeat(3).clone()
    work.tolist()
    look(work)
    work[1:2] = drawn()
    return tuple(map(int, work[:2].tolist()))


@pytest.mark.parametrize(
    "look",
    [lambda work: work[:2].tolist(), lambda work: work.view(3, 1)[0].item(), lambda work: work[2:].add_(1.0)],
    ids=["slice", "view", "written through a view"],
)
def test_a_copy_whose_numbers_are_known_may_be_drawn_into(look):
    assert close(law_of(lambda: copied_and_looked_at(look)), expected(lambda token: token))
