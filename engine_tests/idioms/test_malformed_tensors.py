"""Tensors that hold no tokens: each is answered in a sentence."""

from __future__ import annotations

import pytest
import torch

from specverify.testing import UnusableSubject, check_engine

LAW = {(1, 0): 1.0}


@pytest.mark.thorough(keep=6)
@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (torch.zeros(2, dtype=torch.long, device="meta"), "it returned a tensor on meta, which holds no numbers"),
        (torch.tensor([True, False]), "it emitted bools, expected token ids"),
        (
            torch.tensor([1.0, 0.0], dtype=torch.float16),
            "it emitted float16, expected a type that holds every token id",
        ),
        (torch.tensor([1.0, 0.5]), "it returned the token 0.5, expected a sequence of new token ids"),
        (torch.tensor([[[1, 0]]]), "it returned Tensor of shape (1, 1, 2), expected a sequence of new token ids"),
        (torch.tensor([], dtype=torch.long), "it returned no token, expected at least one"),
    ],
)
def test_a_tensor_that_holds_no_tokens(answer, sentence):
    with pytest.raises(UnusableSubject) as caught:
        check_engine(lambda: answer, LAW)
    assert f"is unusable: {sentence}" in str(caught.value)


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("dtype", [torch.int16, torch.int64, torch.float32])
def test_a_tensor_may_hold_token_ids_of_any_kind(dtype):
    assert check_engine(lambda: torch.tensor([1, 0], dtype=dtype), LAW)


def test_a_draw_that_nobody_looked_at_is_a_token():
    drawn = lambda: torch.multinomial(torch.tensor([0.25, 0.75]), 1)  # noqa: E731 - it is called as it is
    assert check_engine(drawn, {(0,): 0.25, (1,): 0.75})
