"""The verifier on the device with the tape that float64 gets: the same tokens but for near-ties, and the same bits.

Disagreements with float64 are allowed only where a uniform lies within the derived error of a breakpoint; each is
listed. ``pytest -rP`` shows the lists. No row sees its neighbours.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from reference import Verified, verify_batched
from test_support.gpu.batches import Inputs, by_row, in_chunks, on_device, row_of, tell
from test_support.gpu.float32_rounding import BFLOAT16_ROUNDING, DTYPES, EPS, weight_errors


class Paired(NamedTuple):
    """One batch of positions in two precisions, with one random tape for both.

    The pmfs are those that the device computed, and those computed in float64 from the same logits.
    """

    exact: Inputs
    device: Inputs
    error: float
    """The largest relative error of a device pmf's entry."""


def paired(storage: torch.dtype, device: torch.device, size: int = 8192, gamma: int = 3, batch: int = 300) -> Paired:
    rng = np.random.default_rng(size)
    target = rng.normal(0, 2.5, (batch, gamma + 1, size))
    logits = [
        torch.tensor(x, dtype=torch.float32)
        for x in (target, target[:, :gamma] + rng.normal(0, 1, (batch, gamma, size)))
    ]
    p, q = (torch.softmax(values.double(), dim=-1).numpy() for values in logits)
    tokens = (q.cumsum(axis=-1) < rng.random((batch, gamma, 1))).sum(axis=-1).clip(max=size - 1)
    exact = Inputs(p, q, tokens, rng.integers(gamma + 1, size=batch), rng.random((batch, gamma)), rng.random(batch))
    stored = [torch.softmax(values.to(device), dim=-1).to(storage) for values in logits]
    # weight_errors plus its mean over the pmf, the sum's n u and the division, for the row that spreads the most
    worst = max(float(weight_errors(row, 1.0).max()) for values in logits for row in values.reshape(-1, size))
    error = 2 * worst + (size + 3) * EPS + (BFLOAT16_ROUNDING if storage == torch.bfloat16 else 0.0)
    return Paired(exact, on_device(exact, device)._replace(p=stored[0], q=stored[1]), error)


def is_near_tie(inputs: Inputs, row: int, found: Verified, error: float) -> bool:
    """Return whether ``found`` differs from float64 only at a uniform within ``error`` of a breakpoint.

    If entries have relative errors up to ``error``, so have u q and p: an accept decision may differ where
    |u q - p| <= error (u q + p). A cumulative mass, and u times the total, have errors up to
    e = error (sum of p + sum of q), so the drawn token satisfies C(below) - 2 e <= u C(all) <= C(token) + 2 e.
    """
    error += inputs.p.shape[2] * np.finfo(float).eps
    for i, token in enumerate(inputs.draft_tokens[row, : inputs.lengths[row]]):
        mass, scaled = inputs.p[row, i, token], inputs.accept_uniforms[row, i] * inputs.q[row, i, token]
        if (found.accepted > i) != (scaled < mass):
            return bool(abs(scaled - mass) <= error * (scaled + mass))
        if found.accepted == i:
            break
    weights, e = inputs.p[row, found.accepted], error
    if found.accepted < inputs.lengths[row]:
        weights, e = np.maximum(weights - inputs.q[row, found.accepted], 0), 2 * error
    cumulative, last = weights.cumsum(), found.tokens[-1]
    drawn = inputs.final_uniforms[row] * cumulative[-1]
    return bool(cumulative[last] - weights[last] - 2 * e <= drawn <= cumulative[last] + 2 * e)


def disagreements(pair: Paired, inputs: Inputs) -> dict[str, bool]:
    """Return the rows of ``inputs`` that the device decides unlike float64, each with whether it is a near-tie."""
    batch = in_chunks(verify_batched, inputs, 100)
    found = {}
    for row in range(len(inputs.p)):
        one, wanted = row_of(batch, row), by_row(pair.exact, row, exact=False)
        if one != wanted:
            found[f"row {row}: {one} on the device, {wanted} in float64"] = is_near_tie(
                pair.exact, row, one, pair.error
            )
    return found


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("storage", DTYPES.values(), ids=DTYPES)
def test_same_tape_same_tokens_but_for_near_ties(storage: torch.dtype, device: torch.device) -> None:
    """In bfloat16 some rows do differ, so the explanation is put to use; and a wrong row is not explained by it."""
    pair = paired(storage, device)
    found = disagreements(pair, pair.device)
    for line in (f"{len(found)} of {len(pair.exact.p)} rows differ", *found):
        tell(line)
    assert [line for line, near in found.items() if not near] == []
    assert found or storage == torch.float32
    planted = list(disagreements(pair, pair.device._replace(p=pair.device.p.roll(1, dims=1))).values())
    tell(f"planted, p one row late: {len(planted)} rows differ, {planted.count(False)} by more than rounding")
    assert not all(planted)


# Determinism and the company of a row


def mixed_batch(device: torch.device) -> Inputs:
    pair = paired(torch.float32, device, size=1000, batch=64)
    return pair.device


def test_the_same_uniforms_give_the_same_bits(device: torch.device) -> None:
    inputs = mixed_batch(device)
    first, second = verify_batched(*inputs), verify_batched(*inputs)
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


@pytest.mark.parametrize("seed", range(3))
def test_rows_do_not_see_each_other(seed: int, device: torch.device) -> None:
    """In another order, in parts, alone: a row emits what it emits. Sums in another order move breakpoints by 1e-13."""
    inputs = mixed_batch(device)
    whole = verify_batched(*inputs)
    order = torch.tensor(np.random.default_rng(seed).permutation(64), device=device)
    moved = verify_batched(*(values[order] for values in inputs))
    assert torch.equal(moved.emitted, whole.emitted[order])
    assert torch.equal(moved.accepted, whole.accepted[order])
    for size in (1, 7, 64):
        assert torch.equal(in_chunks(verify_batched, inputs, size).emitted, whole.emitted)


def test_planted_row_that_sees_its_neighbour_is_noticed(device: torch.device) -> None:
    """One uniform for the whole batch, the first row's, is another batch's outcome as soon as the order changes."""
    inputs = mixed_batch(device)

    def shared(*values: Any) -> Any:
        return verify_batched(*values[:5], values[5][:1].expand(len(values[5])))

    order = torch.arange(63, -1, -1, device=device)
    moved = shared(*(values[order] for values in inputs))
    assert not torch.equal(moved.emitted, shared(*inputs).emitted[order])
