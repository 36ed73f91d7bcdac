"""The bound of a law follows from what was computed: not from the size of a token's id, and from the floats seen."""

from __future__ import annotations

import pytest
import torch

from specverify.base.verdict import Status
from specverify.testing import check_engine

IDS = (0, 1_000, 32_000, 151_000)
LOGITS = {"target": ((0.3, 1.2, -0.4), (1.5, 0.1, 0.2), (-1.0, 0.4, 2.0)),
          "draft": ((1.1, 0.3, 0.9), (0.2, 1.4, 0.1), (0.5, 0.5, 0.4))}  # fmt: skip


def rows(which, dtype):
    return torch.tensor(LOGITS[which], dtype=dtype).softmax(-1)


def plain(first, dtype):
    """Two tokens of a chain model whose ids begin at ``first``."""
    p, token, new = rows("target", dtype), 0, []
    for _ in range(2):
        token = int(torch.multinomial(p[token], 1))
        new.append(first + token)
    return new


def speculative(first, dtype, recover):
    p, q, token, new = rows("target", dtype), rows("draft", dtype), 0, []
    while len(new) < 2:
        draft = int(torch.multinomial(q[token], 1))
        if torch.rand((), dtype=torch.float64) < (p[token, draft] / q[token, draft]):
            token = draft
        else:
            token = int(torch.multinomial(recover(p[token], q[token]), 1))
        new.append(first + token)
    return new


def right(p, q):
    residual = (p - q).clamp(min=0)
    return residual / residual.sum() if residual.sum() > 0 else p


def from_the_target(p, q):
    return p


def law_is_target(first, dtype, recover):
    found = check_engine(lambda: speculative(first, dtype, recover), lambda: plain(first, dtype), on_fail=None)
    return next(verdict for verdict in found if verdict.check == "law_is_target")


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("first", IDS)
def test_the_verdict_is_the_same_wherever_the_ids_begin(first, dtype):
    held, refuted = law_is_target(first, dtype, right), law_is_target(first, dtype, from_the_target)
    assert held.status is Status.HOLDS, held.statement
    assert refuted.status is Status.REFUTED
    assert held.figures["tv"] <= held.figures["rounding"] / 4 < 1e-4
    assert refuted.figures["tv"] > 100 * refuted.figures["rounding"]


@pytest.mark.thorough
@pytest.mark.parametrize("first", IDS)
def test_in_bfloat16_a_wrong_engine_is_refuted_and_a_right_one_is_told_what_its_dtype_costs(first):
    held, refuted = law_is_target(first, torch.bfloat16, right), law_is_target(first, torch.bfloat16, from_the_target)
    assert held.status is Status.UNKNOWN
    assert "may be rounding" in held.statement
    assert "in float64 up to" in held.statement
    assert refuted.status is Status.REFUTED


def test_two_calls_that_compute_alike_hold_in_every_dtype():
    found = check_engine(lambda: plain(0, torch.bfloat16), lambda: plain(0, torch.bfloat16), on_fail=None)
    law = next(verdict for verdict in found if verdict.check == "law_is_target")
    assert (law.status, law.figures["tv"]) == (Status.HOLDS, 0.0)
