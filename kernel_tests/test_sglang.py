"""SGLang's chain and block verification; its wheel is unpacked where ``SGLANG_WHEEL`` says."""

from __future__ import annotations

from typing import Any

import pytest
import sglang_kernels
import torch
from examined import ROUNDED, refuted

VOCABULARIES = {True: (4097,), False: (4097, 8193, 32_769)}
ROWS = {True: 2500, False: 2**16}


@pytest.mark.parametrize("rule", ["token", "block"])
def test_the_law_holds_and_an_empty_residual_emits_the_last_token(rule: Any, device: torch.device, quick: bool) -> None:
    """Where p and q differ by rounding alone and a draft is rejected, the last id of the vocabulary comes out."""
    kernel = sglang_kernels.chain(sglang_kernels.load(sglang_kernels.folder()), block=rule == "block")
    sizes = dict(gammas=(2,), vocabularies=VOCABULARIES[quick], rows=ROWS[quick])
    found = refuted(kernel, ends="accepted", rule=rule, device=device, **sizes)
    assert found.keys() <= {ROUNDED}
    assert "probability 0" in found[ROUNDED]
