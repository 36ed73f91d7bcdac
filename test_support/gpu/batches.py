"""Verifications of chain drafts in batches on the device, and row by row by the reference, on the same random tape."""

from __future__ import annotations

import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import torch

from reference import Batch, Tokens, Verified, chain
from reference.verifiers.speculative_sampling import speculative_sampling
from specverify.laws.draws import Tape

PADDING = -1
DENOMINATOR = 64
"""Multiples of 1/64 are exact in bfloat16, and so is all that float64 does with them and uniforms of ten bits."""


class Inputs(NamedTuple):
    """The arguments of ``verify_batched``: NumPy float64 and int64, or tensors."""

    p: Any
    q: Any
    draft_tokens: Any
    lengths: Any
    accept_uniforms: Any
    final_uniforms: Any


def on_device(inputs: Inputs, device: torch.device, dtype: torch.dtype = torch.float64) -> Inputs:
    """Return the inputs as tensors on ``device``, the pmfs in ``dtype``."""
    tensors = [torch.tensor(values, device=device) for values in inputs]
    return Inputs(tensors[0].to(dtype), tensors[1].to(dtype), *tensors[2:])


def dyadic(seed: int, vocabulary: int, gamma: int, batch: int) -> Inputs:
    """Return random inputs for which exact and float64 results are equal.

    The pmfs are multiples of 1/64 with many zeros and ties, the uniforms lie on breakpoints and at both ends, and rows
    have any length. Entries beyond a row's length are invalid: ids -1 or far outside the vocabulary, pmfs NaN.
    """
    rng = np.random.default_rng([seed, vocabulary, gamma])

    def rows(count: int) -> Any:
        spread = rng.dirichlet(np.full(vocabulary, 0.5), size=(batch, count))
        return rng.multinomial(DENOMINATOR, spread / spread.sum(axis=-1, keepdims=True)) / DENOMINATOR

    def uniforms(*shape: int) -> Any:
        ends = rng.choice([0.0, 2**-53, 1 - 2**-53], size=shape)
        return np.where(rng.random(shape) < 0.2, ends, rng.integers(1024, size=shape) / 1024)

    p, q = rows(gamma + 1), rows(gamma)
    same = rng.random(batch) < 0.2
    q[same] = p[same, :gamma]
    tokens, lengths = rng.integers(vocabulary, size=(batch, gamma)), rng.integers(gamma + 1, size=batch)
    ended = np.arange(gamma) >= lengths[:, None]
    tokens[ended] = rng.choice([PADDING, vocabulary, 10**6], size=ended.sum())
    p[:, 1:][ended], q[ended] = np.nan, np.nan
    return Inputs(p, q, tokens, lengths, uniforms(batch, gamma), uniforms(batch))


def by_row(inputs: Inputs, row: int, *, exact: bool) -> Verified:
    """Return what the reference's verifier emits for one row of NumPy inputs.

    It computes on fractions if ``exact``, else on float64.
    """
    gamma, drafted = inputs.q.shape[1], tuple(inputs.draft_tokens[row, : inputs.lengths[row]].tolist())
    final = float(inputs.final_uniforms[row])
    accepts = {(("accept", i), 0): float(inputs.accept_uniforms[row, i]) for i in range(gamma)}
    tape = Tape(0, {**accepts, **{(("residual", i), 0): final for i in range(gamma)}, (("bonus",), 0): final})

    def pmf(values: Any) -> Any:
        return np.array([Fraction(value) for value in values.tolist()], dtype=object) if exact else values

    def target(tokens: Tokens) -> Any:
        return pmf(inputs.p[row, len(tokens)])

    draft = chain(drafted, tuple(pmf(inputs.q[row, i]) for i in range(len(drafted))))
    return speculative_sampling(tape, target, (), draft)


def row_of(batch: Batch, row: int) -> Verified:
    """Return one row of a batch without its padding."""
    emitted, accepted = batch.emitted[row].tolist(), int(batch.accepted[row])
    assert emitted[accepted + 1 :] == [PADDING] * (len(emitted) - accepted - 1)
    return Verified(tuple(emitted[: accepted + 1]), accepted)


def differing(inputs: Inputs, batch: Batch, *, exact: bool) -> list[int]:
    """Return the rows of a batch that differ from what the reference's verifier emits."""
    rows = range(len(inputs.p))
    return [row for row in rows if row_of(batch, row) != by_row(inputs, row, exact=exact)]


def in_chunks(verify: Callable[..., Batch], inputs: Inputs, size: int) -> Batch:
    """Verify ``size`` rows at a time, which limits the memory: each row needs several float64 copies of its pmfs."""
    parts = [verify(*(values[start : start + size] for values in inputs)) for start in range(0, len(inputs.p), size)]
    return Batch(*(torch.cat(values) for values in zip(*parts, strict=True)))


def pace(device: torch.device) -> str:
    """Return the name of the device whose sample sizes are affordable; a simulated GPU is as slow as a CPU."""
    real = device.type == "cuda" and torch.cuda.get_device_name(device) != "simulated"
    return "cuda" if real else "cpu"


def tell(line: str) -> None:
    """Print a line that pytest keeps with the test, and shows with ``-rP`` or if the test fails."""
    sys.stdout.write(line + "\n")
