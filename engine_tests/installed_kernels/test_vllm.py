"""vLLM's kernels of random and greedy rows, recovered tokens and expansion, and its second runner's verification."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from vllm.v1.sample import rejection_sampler
from vllm.v1.worker.gpu.spec_decode import rejection_sampler_utils

from reference import greedy_batched
from test_support.installed_kernels import vllm_kernels
from test_support.installed_kernels.examined import BOUNDARY, ROUNDED, refuted
from test_support.installed_kernels.mended import VLLM, mended


def test_random_rows_hold_but_for_a_uniform_of_zero_and_an_empty_residual(device: torch.device, quick: bool) -> None:
    """``p / q >= u`` accepts what p forbids at u = 0; the race of an empty residual is won by token 0."""
    sizes = dict(gammas=(2,), vocabularies=() if quick else (1025, 8193), rows=2000 if quick else 2**16)
    found = refuted(vllm_kernels.random_rows(rejection_sampler), recovery="exponential", device=device, **sizes)
    assert found.keys() == {BOUNDARY, ROUNDED}
    assert "is exactly 0" in found[BOUNDARY]
    assert "token 0 has probability 0" in found[ROUNDED]


def test_random_rows_hold_if_they_are_mended(device: torch.device, quick: bool, tmp_path: Path) -> None:
    """The control: the same adapter and rows, and the two faults mended."""
    sizes = dict(gammas=(2,), vocabularies=() if quick else (1025,), rows=2000 if quick else 2**16)
    kernel = vllm_kernels.random_rows(mended(rejection_sampler.__file__, VLLM, tmp_path))
    assert not refuted(kernel, recovery="exponential", device=device, **sizes)


def test_greedy_rows_are_the_references(device: torch.device) -> None:
    """Every argmax and every draft of three tokens, rows of 0 to 2 drafts in one launch."""
    rows = [
        (draft, best)
        for length in range(3)
        for draft in product(range(3), repeat=length)
        for best in product(range(3), repeat=length + 1)
    ]
    lengths = torch.tensor([len(draft) for draft, _ in rows], device=device)
    drafts = torch.tensor([token for draft, _ in rows for token in draft], dtype=torch.int32, device=device)
    argmax = torch.tensor([token for _, best in rows for token in best[:-1]], device=device)
    bonus = torch.tensor([[best[-1]] for _, best in rows], device=device)
    ends = lengths.cumsum(0).to(torch.int32)
    seen = vllm_kernels.greedy_rows(rejection_sampler, argmax, bonus, drafts, ends, 2)
    logits = torch.zeros(len(rows), 3, 3, device=device)
    padded = torch.zeros(len(rows), 2, dtype=torch.int64, device=device)
    for row, (draft, best) in enumerate(rows):
        for i, token in enumerate(best):
            logits[row, i, token] = 1
        padded[row, : len(draft)] = torch.tensor(draft)
    assert seen.tolist() == greedy_batched(logits, padded, lengths).emitted.tolist()


def test_expanded_rows_are_repeated(device: torch.device) -> None:
    """Every value as often as its row has tokens, and the one to be replaced replaced."""
    values, counts = torch.tensor([0.5, 0.0, 2.0, 0.0], device=device), torch.tensor([2, 3, 0, 1], device=device)
    ends = counts.cumsum(0).to(torch.int32)
    seen = rejection_sampler.expand_batch_to_tokens(values, ends, 6, replace_from=0, replace_to=1)
    assert seen.tolist() == [0.5, 0.5, 1, 1, 1, 1]


@pytest.mark.thorough
@pytest.mark.parametrize("rule", ["token", "block"])
def test_the_second_runner_holds_as_far_as_samples_show(rule: Any, device: torch.device, quick: bool) -> None:
    """Coins, Gumbel noises, rows and calls of its own generator; a hundred rows a second without a GPU."""
    module = vllm_kernels.without_libdevice(rejection_sampler_utils) if quick else rejection_sampler_utils
    kernel = vllm_kernels.second_runner(module, block=rule == "block")
    sizes = dict(gammas=(1,) if quick else (1, 2), vocabularies=() if quick else (1025, 8193))
    precision = dict(tv=0.2, largest_call=98) if quick else dict(tv=1e-3, largest_call=2**14)
    assert not refuted(kernel, uniforms="seed", ends="emitted", rule=rule, device=device, **sizes, **precision)
