"""A kernel that follows a known wrong recipe: the first line names the wrong quantity."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.testing import KernelConvention, check_kernel


def pick(weights, u, *, scaled=True):
    sums = np.cumsum(weights, dtype=np.float64)
    at = int(np.searchsorted(sums, float(u) * (sums[-1] if scaled else 1), side="right"))
    return min(at, int(np.flatnonzero(weights > 0)[-1]))


def by_token(p, q, drafts, accept_uniforms, final_uniforms, scaled=True, again=False):
    """Verify token by token; with ``again`` the residual is looked up by the coin, without ``scaled`` not divided."""
    out = np.full((len(drafts), drafts.shape[1] + 1), -1, dtype=np.int64)
    for b, (row, x) in enumerate(zip(out, drafts, strict=True)):
        n = 0
        while n < len(x) and accept_uniforms[b, n] * q[b, n, x[n]] < p[b, n, x[n]]:
            n += 1
        left = np.maximum(p[b, n] - q[b, n], 0) if n < len(x) else p[b, n]
        number = accept_uniforms[b, n] if again and n < len(x) else final_uniforms[b]
        row[:n], row[n] = x[:n], pick(left, number, scaled=scaled)
    return out


def unscaled(*arguments):
    return by_token(*arguments, scaled=False)


def coin_again(*arguments):
    return by_token(*arguments, again=True)


def block(p, q, drafts, accept_uniforms, final_uniforms, limit=lambda weight, ratio: weight * min(1.0, ratio)):
    gamma = drafts.shape[1]
    out = np.full((len(drafts), gamma + 1), -1, dtype=np.int64)
    for b, (row, x) in enumerate(zip(out, drafts, strict=True)):
        weights, kept = [1.0], 0
        for i in range(gamma):
            weights.append(limit(weights[-1], float(p[b, i, x[i]] / q[b, i, x[i]])))
            passes = weights[-1]
            if i + 1 < gamma:
                left = np.maximum(weights[-1] * p[b, i + 1] - q[b, i + 1], 0).sum()
                passes = left / (left + 1 - weights[-1]) if left + 1 > weights[-1] else 1.0
            kept = i + 1 if accept_uniforms[b, i] < passes else kept
        left = np.maximum(weights[kept] * p[b, kept] - q[b, kept], 0) if kept < gamma else p[b, kept]
        row[:kept], row[kept] = x[:kept], pick(left if left.any() else p[b, kept], final_uniforms[b])
    return out


@pytest.mark.parametrize(
    ("kernel", "rule", "said"),
    [
        (unscaled, "token", "the residual max(p - q, 0) is not divided by its sum: "),
        (
            coin_again,
            "token",
            "a replacement is drawn with the accept uniform of the rejected draft, not with the last",
        ),
        (block, "block", "the weight of the first i drafts is the product of min(1, p/q), expected the running pro"),
    ],
)
def test_the_wrong_quantity_of_a_kernel_is_named(kernel, rule, said):
    (verdict,) = check_kernel(
        kernel, KernelConvention(rule=rule), gammas=(2,), vocabularies=(), checks=["law_is_target"], on_fail=None
    )
    assert verdict.counterexample.fault.startswith(said)


def test_the_right_recipes_hold():
    def right(*arguments):
        return by_token(*arguments)

    def right_block(*arguments):
        return block(*arguments, limit=lambda weight, ratio: min(1.0, weight * ratio))

    for kernel, rule in ((right, "token"), (right_block, "block")):
        (verdict,) = check_kernel(
            kernel, KernelConvention(rule=rule), gammas=(2,), vocabularies=(), checks=["law_is_target"], on_fail=None
        )
        assert verdict.status is Status.HOLDS
