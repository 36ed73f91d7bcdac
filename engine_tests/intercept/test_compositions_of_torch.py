"""Forty random chains of operations of torch on uniforms, ended by a comparison: the answered law against many rows."""

from __future__ import annotations

import pytest
import torch

from specverify.intercept.refusals import NeedsValue
from test_support.intercept.compositions import (
    FAR,
    REFUSED,
    ROWS,
    answered_law,
    bound_of,
    composition,
    furthest,
    values,
)


def of(number, x):
    return torch.tensor(number, dtype=x.dtype)


STEPS = {
    "scale": lambda x, c: x * (3 * c - 1),
    "shift": lambda x, c: torch.add(x, c - 0.5),
    "minus the logarithm": lambda x, c: -x.clamp(min=1e-12).log(),
    "exp": lambda x, c: torch.exp(x * c),
    "sqrt": lambda x, c: x.relu().sqrt(),
    "clip": lambda x, c: x.clamp(0.2, 0.2 + c),
    "minimum": torch.clamp_max,
    "reciprocal": lambda x, c: (x.abs() + 0.5).reciprocal(),
    "floor": lambda x, c: torch.floor(x * 4),
    "ceil": lambda x, c: torch.ceil(x * 3 - c),
    "round": lambda x, c: torch.round(x * 3 + c),
    "trunc": lambda x, c: torch.trunc(x * 4 - 2),
    "remainder": lambda x, c: (x * 3 - c) % 1.0,
    "fmod": lambda x, c: (x * 3 - c).frac(),
    "abs": lambda x, c: (x - c).abs(),
    "where": lambda x, c: torch.where(x < c, 2 * x, 1 - x),
    "select": lambda x, c: torch.where(x < c / 2, x * 2, torch.where(x < c, x + 0.1, 0.3)),
    "sort": lambda x, c: x.sort(-1).values,
    "cumsum": lambda x, c: x.cumsum(-1),
    "cumprod": lambda x, c: x.cumprod(-1),
    "largest so far": lambda x, c: x.cummax(-1).values,
    "flip": lambda x, c: x.flip(-1),
    "sum": lambda x, c: x.sum(-1, keepdim=True),
    "max": lambda x, c: x.amax(-1, keepdim=True),
    "copysign": lambda x, c: torch.copysign(x - c, of(1.0, x)),
    "logaddexp": lambda x, c: torch.logaddexp(x, of(c, x)),
    "sign": lambda x, c: torch.sign(x - c),
    "heaviside": lambda x, c: torch.heaviside(x - c, of(0.5, x)),
    "nan_to_num": lambda x, c: torch.nan_to_num(torch.where(x < c, torch.nan, x), nan=0.4),
    "floor_divide": lambda x, c: torch.floor_divide(x, 0.1 + c / 2),
    "whole": lambda x, c: (x * 5).long().to(x.dtype),
    "times a mask": lambda x, c: x * (x < c),
    "log1p": lambda x, c: torch.log1p(x.abs()),
    "power": lambda x, c: torch.pow(x.abs(), c + 0.3),
    "concatenate": lambda x, c: torch.cat([x, of(c, x).expand(*x.shape[:-1], 1)], -1),
    "stack": lambda x, c: torch.stack([x, x + c]).amax(0),
}
RELATIONS = {"<": lambda x, c: x < c, "<=": lambda x, c: x <= c, ">": lambda x, c: c < x}
ENDS = {
    "each": lambda mask: mask,
    "all": lambda mask: mask.all(-1, keepdim=True),
    "any": lambda mask: mask.any(-1, keepdim=True),
    "count": lambda mask: mask.sum(-1, keepdim=True),
    "first": lambda mask: mask.int().argmax(-1, keepdim=True),
    "kept": lambda mask: mask.long().cumprod(-1).sum(-1, keepdim=True),
}


def decided(chain, uniforms, bound):
    return ENDS[chain.end](RELATIONS[chain.relation](values(chain, uniforms, STEPS), bound))


def law_of(chain, bound):
    return answered_law(lambda: decided(chain, torch.rand(chain.uniforms, dtype=torch.float64), bound))


@pytest.mark.thorough(keep=17)
@pytest.mark.parametrize("seed", sorted({*range(40)} - REFUSED))
def test_a_chain_has_the_law_that_is_answered(seed):
    chain = composition(seed)
    bound = bound_of(chain, STEPS, torch.from_numpy)
    generator = torch.Generator().manual_seed(seed)
    rows = decided(chain, torch.rand((ROWS, chain.uniforms), generator=generator, dtype=torch.float64), bound)
    assert furthest(law_of(chain, bound), rows) < FAR


@pytest.mark.parametrize("seed", sorted(REFUSED))
def test_what_is_not_known_is_refused(seed):
    chain = composition(seed)
    with pytest.raises(NeedsValue):
        law_of(chain, bound_of(chain, STEPS, torch.from_numpy))
