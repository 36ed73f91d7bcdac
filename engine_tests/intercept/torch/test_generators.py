"""Which functions of torch may draw: those whose code shows that they draw nothing are run without supervision."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from specverify.intercept.torch.functions import name_of
from specverify.intercept.torch.generators import draws

DRAW_NOTHING = (
    functional.softmax,
    functional.layer_norm,
    functional.rms_norm,
    functional.embedding,
    functional.silu,
    functional.pad,
    torch.einsum,
    torch.Tensor.split,
)
MAY_DRAW = (
    functional.dropout,
    functional.rrelu,
    functional.fractional_max_pool2d,
    functional.multi_head_attention_forward,
    functional.scaled_dot_product_attention,
    torch.svd_lowrank,
    torch.cond,
    torch.ops.aten.native_dropout,
    torch.Tensor.normal_,
)


@pytest.mark.parametrize("function", DRAW_NOTHING, ids=lambda function: function.__name__)
def test_code_that_names_no_draw_draws_nothing(function):
    assert not draws(function)


@pytest.mark.parametrize("function", MAY_DRAW, ids=[f"{place} {name_of(each)}" for place, each in enumerate(MAY_DRAW)])
def test_code_that_names_a_draw_or_takes_a_function_may_draw(function):
    assert draws(function)


def test_functions_of_other_modules_may_draw():
    assert draws(lambda tensor: tensor)


def outside(tensor):
    return inside(tensor)


def inside(tensor):
    return torch.dropout(tensor, 0.5, train=True)


def test_draws_are_found_through_the_functions_that_a_function_names(monkeypatch):
    for function in (outside, inside):
        monkeypatch.setattr(function, "__module__", "torch.nn.functional")
    assert draws(outside)
