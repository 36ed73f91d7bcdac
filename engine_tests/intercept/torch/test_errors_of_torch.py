"""An operation on random numbers that torch cannot do raises torch's own error, which a program may catch."""

from __future__ import annotations

import pytest
import torch

from specverify.intercept.everywhere import answered_everywhere
from specverify.laws.draws import Tape
from test_support.intercept.torch_laws import close, law_of

WEIGHTS = torch.tensor([0.5, 0.25, 0.25])


def outcomes(number):
    return torch.multinomial(WEIGHTS, number, replacement=True)


WRONG = {
    "dimensions": lambda: torch.cat([outcomes(1), torch.zeros(2, 1, dtype=torch.long)]),
    "sizes": lambda: torch.cat([torch.rand(2, 3), torch.zeros(2, 1)]),
    "stack": lambda: torch.stack([torch.rand(2), torch.zeros(3)]),
    "broadcast": lambda: torch.rand(2) < torch.zeros(3),
    "where": lambda: torch.where(torch.rand(2) < 0.5, torch.zeros(3), torch.ones(3)),
    "product": lambda: torch.zeros(2, 3) @ torch.rand(2),
    "search": lambda: torch.searchsorted(torch.zeros(2, 3), torch.rand(3)),
    "sum": lambda: torch.rand(2).cumsum(2),
    "argmax": lambda: torch.rand(2).argmax(3),
    "index": lambda: torch.rand(2)[torch.tensor([7])],
    "number": lambda: int(outcomes(2)),
    "view": lambda: torch.rand(4).view(3, 2),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_error_is_that_of_torch(name):
    with pytest.raises((IndexError, RuntimeError, ValueError)) as of_torch:
        WRONG[name]()
    with pytest.raises(of_torch.type), answered_everywhere(Tape(0)):
        WRONG[name]()


def with_fallback():
    text, token = torch.tensor([0]), outcomes(1)
    try:
        text = torch.cat([text[None], token])
    except RuntimeError:
        text = torch.cat([text, token])
    return tuple(text.tolist())


def test_a_program_that_catches_it_is_followed():
    assert close(law_of(with_fallback), {(0, token): float(mass) for token, mass in enumerate(WEIGHTS)})
