"""Laws of programs in which a model computes in bfloat16: what holds, and what is not decided."""

from __future__ import annotations

import pytest
import torch

from specverify.testing import SpeculationUndecided, check_engine

P = torch.tensor([0.5, 0.3, 0.2])
Q = torch.tensor([0.2, 0.5, 0.3]).bfloat16()


def decoded(judged_by):
    """Return one new token. It is drafted from probabilities of bfloat16 and judged by ``judged_by`` of them."""
    drawn = Q.softmax(-1).float()
    drawn = drawn / drawn.sum()
    q = judged_by(drawn)
    token = int(torch.multinomial(drawn, 1))
    if torch.rand(()) * q[token] >= P[token]:
        token = int(torch.multinomial(torch.relu(P - q), 1))
    return [token]


def plain():
    """Return one new token without speculation."""
    return [int(torch.multinomial(P, 1))]


def test_a_law_within_float32_of_the_expected_one_holds_beside_a_draft_in_bfloat16():
    check_engine(lambda: decoded(lambda row: row), plain, quick=True)


def test_a_law_farther_off_than_float32_allows_is_not_decided():
    with pytest.raises(SpeculationUndecided, match="may be rounding"):
        check_engine(lambda: decoded(lambda row: Q.float().softmax(-1)), plain, quick=True)
