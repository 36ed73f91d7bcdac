"""Verifiers of whole batches that reckon with token ids: masks are multiplied, tokens added, counts kept.

No position is looked at before its token is: a batch costs the sum of what its rows cost, not their product.
"""

from __future__ import annotations

import pytest
import torch

from specverify.base.verdict import Status
from test_support.verifiers.in_scenarios import verdict


def sampler(last=torch.eq):
    """A rejection sampler of rows ``[batch, gamma]`` that counts what it accepts; ``last`` tells the rejected one."""
    count = torch.zeros((), dtype=torch.int64)

    def verify(p, q, draft_tokens):
        rows, gamma = draft_tokens.shape
        at, places = draft_tokens[..., None], torch.arange(gamma)
        accepted = torch.rand(rows, gamma, dtype=p.dtype) < (p[:, :-1].gather(-1, at) / q.gather(-1, at))[..., 0]
        noise = torch.empty_like(q).exponential_()
        owed = ((p[:, :-1] - q).clamp(min=0) / noise).argmax(-1)
        first = (~accepted).max(1).indices
        first[accepted.all(1)] = gamma
        before, here = places < first[:, None], last(places, first[:, None])
        found = torch.full((rows, gamma + 1), -1)
        found[:, :gamma] = torch.where(before, draft_tokens, -1)
        found[:, -1] = torch.where(found[:, -2] != -1, torch.multinomial(p[:, -1], 1)[:, 0], -1)
        found[:, :gamma].mul_(~here).add_(owed.mul(here))
        count.add_(accepted.sum())
        return found

    return verify


@pytest.mark.thorough
@pytest.mark.parametrize("check", ["law_is_target", "rows_are_independent"])
def test_a_right_one_holds(check):
    assert verdict(sampler(), check, form="batched").status is Status.HOLDS


@pytest.mark.thorough
def test_a_right_one_has_the_law_of_the_target():
    assert verdict(sampler(), "law_is_target", 4, form="batched").status is Status.HOLDS


def test_its_answer_is_afterwards_what_it_was():
    assert verdict(sampler(), "outputs_are_fresh", 4, form="batched").status is Status.HOLDS


@pytest.mark.usefixtures("unexplained")
def test_a_wrong_one_is_refuted():
    assert verdict(sampler(last=torch.ge), "law_is_target", form="batched").status is Status.REFUTED
