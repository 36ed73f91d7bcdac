"""The law of the first token at real vocabularies, from samples of the verifier on the device; planted kernels too.

``pytest -rP`` shows the sizes of the samples and what they detect.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from reference import verify_batched
from specverify.statistics import ConfirmedFit, FitVerdict, confirmed_fit, divide_alarm, samples_for, stage_level
from test_support.gpu.batches import pace, tell
from test_support.gpu.float32_rounding import DTYPES, VOCABULARIES

ALARM = divide_alarm(1e-6, len(VOCABULARIES) * len(DTYPES))
MISS = 1e-3
DETECTABLE = {"cpu": 0.2, "cuda": 0.02}
BLOCK = 1024
SEGMENTS = 8
"""Tokens outside the heavy ones are counted by eighths of the vocabulary."""


class Pair(NamedTuple):
    """Stored pmfs of one position on the device, and which tokens are counted one by one."""

    p: torch.Tensor
    q: torch.Tensor
    heavy: Any

    @property
    def stored(self) -> tuple[Any, Any]:
        """Return p and q as stored on the device, as NumPy float64 arrays."""
        return self.p.double().cpu().numpy(), self.q.double().cpu().numpy()


def real_pair(size: int, dtype: torch.dtype, device: torch.device) -> Pair:
    """Return pmfs stored in ``dtype``, computed from logits in ``dtype``.

    Heavy tokens are at both ends and around block edges; all others together have 5 percent. The last token is the
    heaviest on average, so a kernel that loses it is far away in total variation.
    """
    rng = np.random.default_rng(size)
    ids = {0, 1, 31, 32, 1023, 1024, 4095, 4096, 8189, 8190, 8191, 8192, size // 2, size - 3, size - 2, size - 1}
    heavy = np.array(sorted(token for token in ids if token < size))
    pmfs = []
    for _ in range(2):
        weights = rng.gamma(1.0, size=size) + 1e-9
        weights *= 0.05 / weights.sum()
        weights[heavy] = 0.95 * rng.dirichlet(np.where(heavy == size - 1, 10.0, 2.0))
        logits = torch.tensor(np.log(weights), dtype=dtype, device=device)
        pmfs.append(torch.softmax(logits.float(), dim=-1).to(dtype))
    return Pair(pmfs[0], pmfs[1], heavy)


def first_token_law(pair: Pair) -> Any:
    """The law of the first token, in closed form, of pmfs that sum only nearly to 1; the draft is drawn from q / sum q.

    Accepted mass is min(p, q) / sum q; the rest is spread as (p - q)+. Subtracting p / sum p = (min + excess) / sum p
    leaves (1 / sum q - 1 / sum p) (min - excess sum(min) / sum(excess)), so the distance to it is at most
    sum(min) |1 / sum q - 1 / sum p|: all that losslessness can lose when pmfs are stored in few bits.
    """
    p, q = pair.stored
    least, excess = np.minimum(p, q), np.maximum(p - q, 0)
    law = least / q.sum() + (1 - least.sum() / q.sum()) * excess / excess.sum()
    lost = np.abs(law - p / p.sum()).sum() / 2
    assert lost <= least.sum() * abs(1 / q.sum() - 1 / p.sum()) + len(p) * np.finfo(float).eps
    return law


def cells_of(pair: Pair, values: Any) -> dict[int, Any]:
    """Sum ``values`` ``[V]`` into cells.

    Each heavy token is a cell; eight segments of the other tokens are the cells -1 to -8.
    """
    size = len(values)
    rest = values.copy()
    rest[pair.heavy] = 0
    segments = np.add.reduceat(rest, np.arange(SEGMENTS) * size // SEGMENTS)
    return {
        **{int(token): values[token].item() for token in pair.heavy},
        **{-1 - segment: mass.item() for segment, mass in enumerate(segments)},
    }


def sampled_cells(pair: Pair, verify: Any, samples: int, seed: int) -> dict[int, int]:
    """Draft one token from q, verify it, and count the first emitted tokens by cell, all on the device."""
    size, device = len(pair.p), pair.p.device
    source = torch.Generator(device=device).manual_seed(seed)
    cumulative = pair.q.double().cumsum(0)
    chunk = max(1, (2**28 if pace(device) == "cuda" else 2**21) // size)
    total = torch.zeros(size, dtype=torch.int64, device=device)
    for start in range(0, samples, chunk):
        rows = min(chunk, samples - start)
        uniforms = torch.rand(3, rows, dtype=torch.float64, device=device, generator=source)
        drafts = torch.searchsorted(cumulative, uniforms[0] * cumulative[-1], right=True)[:, None]
        lengths = torch.ones(rows, dtype=torch.int64, device=device)
        rows_of = pair.p.expand(rows, 2, size), pair.q.expand(rows, 1, size)
        tokens = verify(*rows_of, drafts, lengths, uniforms[1][:, None], uniforms[2]).emitted[:, 0]
        total += torch.bincount(tokens, minlength=size)
    return cells_of(pair, total.cpu().numpy())


def judged(pair: Pair, verify: Any) -> ConfirmedFit:
    """Return the result of the two-stage test at the planned number of samples, with its negative control."""
    law = cells_of(pair, first_token_law(pair))
    samples = samples_for(law, DETECTABLE[pace(pair.p.device)], stage_level(ALARM.each), MISS / 2)
    return confirmed_fit(
        partial(sampled_cells, pair, verify), law, samples=samples, false_alarm=ALARM.each, miss=MISS, seed=0
    )


@pytest.mark.thorough(keep=15)
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
@pytest.mark.parametrize("size", VOCABULARIES)
def test_the_first_token_has_the_targets_law(size: int, dtype: torch.dtype, device: torch.device) -> None:
    """False alarm 1e-6 over all twelve. A total variation of 0.2 (0.02 on a GPU) is seen, and 0.05 outside of them."""
    pair = real_pair(size, dtype, device)
    fit = judged(pair, verify_batched)
    tell(f"{fit.first.samples} samples, {fit.first.cells} cells, p-value {fit.first.p_value:.2g}, detectable TV")
    tell(f"{fit.detectable_tv:.3f} + 0.05 at false alarm {fit.false_alarm:.1e}, miss {fit.miss}")
    assert fit.verdict == FitVerdict.FITS
    assert fit.detectable_tv <= DETECTABLE[pace(device)]


# Planted kernels


def without_last_block(p: Any, *others: Any) -> Any:
    """Planted bug: the loop over blocks of 1024 tokens ends one block early."""
    cut = p.clone()
    cut[..., (p.shape[-1] - 1) // BLOCK * BLOCK :] = 0
    return verify_batched(cut, *others)


def draft_for_target(p: Any, q: Any, *others: Any) -> Any:
    """Planted bug: q is read instead of p, so every draft is accepted."""
    return verify_batched(torch.cat([q, q], dim=1), q, *others)


def next_token(*inputs: Any) -> Any:
    """Planted bug: the search returns the token after the right one, if there is one."""
    batch = verify_batched(*inputs)
    return batch._replace(emitted=(batch.emitted + 1).clamp(max=inputs[0].shape[-1] - 1))


@pytest.mark.thorough(keep=9)
@pytest.mark.parametrize("planted", [without_last_block, draft_for_target, next_token])
@pytest.mark.parametrize("size", [8191, 8192, 8193])
def test_planted_kernels_are_refuted(size: int, planted: Any, device: torch.device) -> None:
    assert judged(real_pair(size, torch.float32, device), planted).verdict == FitVerdict.REFUTED
