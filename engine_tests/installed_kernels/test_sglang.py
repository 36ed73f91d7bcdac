"""SGLang's chain and block verification; its wheel is unpacked where ``SGLANG_WHEEL`` says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from test_support.installed_kernels import sglang_kernels
from test_support.installed_kernels.examined import ROUNDED, refuted
from test_support.installed_kernels.mended import SGLANG, mended

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


def mended_module(folder: Path) -> Any:
    """The kernels with both faults mended."""
    return mended(str(Path(sglang_kernels.folder()) / sglang_kernels.FILE), SGLANG, folder)


@pytest.mark.parametrize("rule", ["token", "block"])
def test_mended_nothing_is_refuted(rule: Any, device: torch.device, quick: bool, tmp_path: Path) -> None:
    """The control: the same adapter, and the two faults mended."""
    kernel = sglang_kernels.chain(mended_module(tmp_path), block=rule == "block")
    sizes = dict(gammas=(2,), vocabularies=() if quick else (4097,), rows=ROWS[quick])
    assert not refuted(kernel, ends="accepted", rule=rule, device=device, **sizes)


@pytest.mark.skipif(torch.cuda.is_available(), reason="the sums of this row round apart under the interpreter")
@pytest.mark.parametrize("block", [False, True])
def test_the_largest_uniform_emits_what_p_forbids_unless_it_is_mended(block: bool, tmp_path: Path) -> None:
    """The bonus row of one that accepts its draft for certain."""
    row = torch.tensor([0.5766754746437073, 0.12097707390785217, 0.28049197793006897, 0.02185552753508091, 0.0])
    call = row.expand(1, 2, -1).contiguous(), row[None, None], torch.tensor([[0]]), torch.tensor([[0.0]])
    found = []
    for module in (sglang_kernels.load(sglang_kernels.folder()), mended_module(tmp_path)):
        tokens, accepted = sglang_kernels.chain(module, block=block)(*call, torch.tensor([1 - 2**-24]))
        found.append((tokens.tolist(), accepted.tolist()))
    assert found == [([[0, 4]], [1]), ([[0, 3]], [1])]
