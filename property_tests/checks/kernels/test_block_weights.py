"""Kernels of block verification (2403.10444, Algorithm 2) whose residual lacks the weight of the accepted drafts."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.testing import KernelConvention, check_kernel


def block_kernel(weight_of):
    """Return a kernel of block verification.

    ``weight_of(weights, passed)`` is the weight of p in the residual: ``weights`` of all positions up to the last kept
    one, and ``passed``, those of them at which the block may end by the coins.
    """

    def row(p, q, drafts, coins, last):
        weights, kept, passed = [1.0], 0, [1.0]
        for i, token in enumerate(drafts):
            weights.append(min(1.0, weights[-1] * p[i, token] / q[i, token]))
            left = np.maximum(weights[-1] * p[i + 1] - q[i + 1], 0).sum() if i + 1 < len(drafts) else weights[-1]
            beside = left + 1 - weights[-1]
            if coins[i] < (weights[-1] if i + 1 == len(drafts) else left / beside if beside > 0 else 0.0):
                kept = i + 1
                passed.append(weights[-1])
        drawn = p[kept]
        if kept < len(drafts):
            left = np.maximum(weight_of(weights[: kept + 1], passed) * p[kept] - q[kept], 0)
            drawn = left if left.any() else drawn
        sums = np.cumsum(drawn)
        token = np.searchsorted(sums, last * sums[-1], side="right")
        return [*drafts[:kept], min(token, np.flatnonzero(drawn)[-1])]

    def kernel(p, q, drafts, accept_uniforms, final_uniforms):
        out = np.full((len(p), drafts.shape[1] + 1), -1)
        rows = p.astype(float), q.astype(float), drafts, accept_uniforms, final_uniforms
        for i, given in enumerate(zip(*rows, strict=True)):
            emitted = row(*given)
            out[i, : len(emitted)] = emitted
        return out

    return kernel


@pytest.mark.parametrize(
    ("weight_of", "status"),
    [
        (lambda weights, passed: weights[-1], Status.HOLDS),
        (lambda weights, passed: 1.0, Status.REFUTED),
        (lambda weights, passed: weights[-1] if len(weights) < 4 else 1.0, Status.REFUTED),
        (lambda weights, passed: min(passed), Status.REFUTED),
    ],
    ids=["right", "none", "none at the fourth draft", "the least of those kept"],
)
def test_a_residual_with_a_wrong_weight_is_refuted_in_a_quick_run(weight_of, status):
    convention = KernelConvention(rule="block", dtype="float64")
    (found,) = check_kernel(block_kernel(weight_of), convention, checks=["law_is_target"], quick=True, on_fail=None)
    assert found.status is status, found
