"""``check_kernel`` on the device: the batched verifier of ``reference``, with given uniforms and with its own."""

from __future__ import annotations

from typing import Any

import torch

from reference import verify_batched
from specverify.base.verdict import Status
from specverify.testing import KernelConvention, check_kernel
from test_support.gpu.batches import pace

PRECISION: dict[str, dict[str, Any]] = {
    "cpu": dict(tv=2e-2, largest_call=2**14, vocabularies=(129,)),
    "cuda": dict(tv=5e-4, largest_call=2**20),
}
"""On a GPU a hundred million rows for each table."""
OWN = KernelConvention(uniforms="own")


def given(p: Any, q: Any, drafts: Any, lengths: Any, accept_uniforms: Any, final_uniforms: Any) -> Any:
    return verify_batched(p, q, drafts, lengths, accept_uniforms, final_uniforms).emitted


def its_own(p: Any, q: Any, drafts: Any) -> Any:
    """Right verifier that draws from the device's own generator."""
    rows, gamma = drafts.shape
    uniforms = torch.rand(rows, gamma + 1, dtype=torch.float64, device=p.device)
    lengths = torch.full((rows,), gamma, device=p.device)
    return verify_batched(p, q, drafts, lengths, uniforms[:, :gamma], uniforms[:, gamma]).emitted


def reseeded(p: Any, q: Any, drafts: Any) -> Any:
    """Planted bug: every call seeds the generator again."""
    torch.manual_seed(0)
    return its_own(p, q, drafts)


def test_the_verifier_is_exact_on_the_device(device: torch.device) -> None:
    verdicts = check_kernel(given, KernelConvention(device=device), vocabularies=(129, 1025), rows=2**14)
    assert {verdict.status for verdict in verdicts} == {Status.HOLDS}


def test_samples_are_drawn_and_counted_on_the_device(device: torch.device) -> None:
    verdicts = check_kernel(its_own, OWN._replace(device=device), **PRECISION[pace(device)])
    assert {verdict.status for verdict in verdicts} == {Status.HOLDS}


def test_a_generator_seeded_in_every_call_is_refuted(device: torch.device) -> None:
    verdicts = check_kernel(reseeded, OWN._replace(device=device), on_fail=None, **PRECISION[pace(device)])
    refuted = {verdict.check for verdict in verdicts if verdict.status is Status.REFUTED}
    assert "calls_are_independent" in refuted
