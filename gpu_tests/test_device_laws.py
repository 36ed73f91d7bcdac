"""Laws on the device: of its pmf kernels, of its verifier on a tape, by enumeration, on a grid, and by samples.

Rounding bounds are derived where they are used and stated with eps, twice the largest relative error u of one rounded
operation: that pays for the higher orders. Disagreements with float64 are allowed only where a uniform lies within the
derived error of a breakpoint; each is listed. ``pytest -rP`` shows the lists and the figures.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from batches import Inputs, by_row, in_chunks, on_device, row_of, tell

from reference import (
    Decoder,
    Draft,
    Draws,
    LanguageModel,
    Task,
    Tokens,
    Verified,
    Verifier,
    accept_probability,
    chain_decoder,
    constant,
    flip,
    model_drafter,
    softmax,
    verify_batched,
)
from reference.verifiers.speculative_sampling import speculative_sampling
from specverify.enumeration import decoder_law
from specverify.grid import chain_grid_law, grid_tables
from specverify.law import rounding_bound, target_law, total_variation
from specverify.statistics import ConfirmedFit, FitVerdict, confirmed_fit, divide_alarm, samples_for, stage_level
from specverify.tables import mixed_with, softmax_table

VOCABULARIES = (8191, 8192, 8193, 32_000, 128_256, 151_936)
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
EPS = torch.finfo(torch.float32).eps
BFLOAT16_ROUNDING = 2.0**-8
"""u of bfloat16: the relative error of storing a pmf in it."""
EXP_ULPS = 20
"""What ATen's vector headers promise of their fastest float32 exponential ("ULP=20"); CUDA's is good to 2."""

Kernel = Callable[[torch.Tensor, float], torch.Tensor]


def float64_softmax(logits: torch.Tensor, temperature: float) -> Any:
    scaled = logits.double().cpu().numpy() / temperature
    weights = np.exp(scaled - scaled.max())
    return weights / weights.sum()


# Pmf kernels


PMF_KERNELS: dict[str, Kernel] = {
    "reference": lambda logits, temperature: softmax(logits.float(), temperature),
    "torch": lambda logits, temperature: torch.softmax(logits.float() / temperature, dim=-1),
}


def weight_errors(logits: torch.Tensor, temperature: float) -> Any:
    """Bound the relative error of every float32 weight exp((l - max) / T), in whichever order it is computed.

    T is rounded, inverted and multiplied with: 3 u |l - max| / T in an exponent after a subtraction (u of it more), or
    3 u (|l| + |max|) / T in one before it. The exponential: 20 units in the last place, 40 u.
    """
    values = np.abs(logits.double().cpu().numpy())
    largest = float(logits.max())
    distance = np.abs(logits.double().cpu().numpy() - largest) / temperature
    return EPS * (3 * (values + abs(largest)) / temperature + 4 * distance + 2 * EXP_ULPS)


def drawn_distance(found: torch.Tensor, exact: Any) -> float:
    """TV from the law that is drawn: the inverse CDF multiplies u with the total, so a common factor drops out."""
    values = found.double().cpu().numpy()
    return float(np.abs(values / values.sum() - exact).sum() / 2)


def random_logits(size: int, seed: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.tensor(np.random.default_rng([seed, size]).normal(0, 3, size), dtype=dtype, device=device)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
@pytest.mark.parametrize("temperature", [0.7, 1.0])
@pytest.mark.parametrize("kernel", PMF_KERNELS)
@pytest.mark.parametrize("size", VOCABULARIES)
def test_softmax_in_float32(
    size: int, kernel: str, temperature: float, dtype: torch.dtype, device: torch.device
) -> None:
    """An entry: its weight, the sum's own n u and mean weight error, a division. The law: weight errors and a division.

    With p' = p (1 + d) / (1 + mean of d), TV = sum p |d - mean d| / 2 <= sum p |d|.
    """
    logits = random_logits(size, 0, dtype, device)
    found, exact = PMF_KERNELS[kernel](logits, temperature), float64_softmax(logits, temperature)
    errors = weight_errors(logits, temperature)
    mean = float((exact * errors).sum())
    relative = np.abs(found.double().cpu().numpy() - exact) / exact
    tell(
        f"largest error {relative.max() / EPS:.1f} eps, TV drawn {drawn_distance(found, exact):.1e} <= {mean + EPS:.1e}"
    )
    assert found.dtype == torch.float32
    assert (relative <= errors + mean + (size + 3) * EPS).all()
    assert drawn_distance(found, exact) <= mean + EPS
    planted = PMF_KERNELS[kernel](logits, temperature * 1.001)
    assert drawn_distance(planted, exact) > mean + EPS


@pytest.mark.parametrize("size", VOCABULARIES)
def test_softmax_stored_in_bfloat16(size: int, device: torch.device) -> None:
    """The kernel computes in float32 and rounds once: u of bfloat16 more, in an entry and in the law."""
    logits = random_logits(size, 1, torch.bfloat16, device)
    found, exact = torch.softmax(logits, dim=-1), float64_softmax(logits, 1.0)
    bound = float((exact * weight_errors(logits, 1.0)).sum()) + EPS + BFLOAT16_ROUNDING * (1 + 2 * BFLOAT16_ROUNDING)
    tell(f"TV drawn {drawn_distance(found, exact):.1e} <= {bound:.1e}")
    assert found.dtype == torch.bfloat16
    assert drawn_distance(found, exact) <= bound
    assert drawn_distance(torch.softmax(logits * 1.125, dim=-1), exact) > bound


def test_float64_softmax_is_the_exact_one(device: torch.device) -> None:
    """What the others are measured with, against 60 decimal digits; the bound is that of ``test_pmfs_on_device``."""
    logits, temperature = random_logits(300, 2, torch.bfloat16, device), 0.7
    with localcontext() as context:
        context.prec = 60
        scaled = [(Decimal(value) - Decimal(float(logits.max()))) / Decimal(temperature) for value in logits.tolist()]
        weights = [value.exp() for value in scaled]
        exact = np.array([float(weight / sum(weights)) for weight in weights])
    largest = float(max(abs(value) for value in scaled))
    assert (
        np.abs(float64_softmax(logits, temperature) / exact - 1).max() <= (3 * largest + 5 + 300) * np.finfo(float).eps
    )


# The same tape, the same tokens


class Paired(NamedTuple):
    """The pmfs the device computed and, of the same logits, the float64 ones; one tape for both."""

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
    """Whether ``found`` differs from float64 only at a uniform within ``error`` of a breakpoint.

    If entries are off by ``error`` relatively, u q and p are, so an accept decision may differ where
    |u q - p| <= error (u q + p). A cumulative mass, and u times the total, are off by at most
    e = error (sum of p + sum of q), so the token found satisfies C(below) - 2 e <= u C(all) <= C(token) + 2 e.
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
    """The rows of ``inputs`` that the device does not decide as float64 does, and whether each is a near-tie."""
    batch = in_chunks(verify_batched, inputs, 100)
    found = {}
    for row in range(len(inputs.p)):
        one, wanted = row_of(batch, row), by_row(pair.exact, row, exact=False)
        if one != wanted:
            found[f"row {row}: {one} on the device, {wanted} in float64"] = is_near_tie(
                pair.exact, row, one, pair.error
            )
    return found


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


# The exact law by enumeration, with pmfs that live on the device


def from_target(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Planted: the replacement comes from p."""
    for i, token in enumerate(draft.tokens):
        p = target(prefix + draft.tokens[:i])
        if not flip(draws, accept_probability(p, draft.pmfs[i], token), ("accept", i)):
            return Verified((*draft.tokens[:i], draws.categorical(p, ("residual", i))), i)
    return Verified((*draft.tokens, draws.categorical(target(prefix + draft.tokens), ("bonus",))), len(draft.tokens))


def device_task(dtype: torch.dtype, device: torch.device) -> Task:
    """Full-context tables whose rows are tensors on the device."""

    def on_it(model: LanguageModel) -> LanguageModel:
        return lambda tokens: torch.tensor(model(tokens), dtype=dtype, device=device)

    target = softmax_table(3, 1.0, seed=0)
    return Task(on_it(target), on_it(mixed_with(target, softmax_table(3, 1.0, seed=1), 0.5)), horizon=3)


def decoder(task: Task, verify: Verifier) -> Decoder:
    assert task.draft is not None
    return chain_decoder(task, model_drafter(task.draft), constant(2), verify)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_the_enumerated_law_of_device_pmfs_is_the_targets(dtype: torch.dtype, device: torch.device) -> None:
    """The enumerator asks of a pmf which entries are positive, and multiplies; ``rounding_bound`` is the tolerance."""
    task = device_task(dtype, device)
    wanted = target_law(task, (0,))
    law = decoder_law(decoder(task, speculative_sampling), (0,))
    bound = rounding_bound(law, 3, torch.finfo(dtype).eps)
    assert total_variation(law, wanted).high <= bound
    planted = decoder_law(decoder(task, from_target), (0,))
    assert total_variation(planted, wanted).low > 100 * bound


# The exact law of the kernel itself, on a grid


def launched(
    device: torch.device, verify: Any, p: Any, q: Any, draft: Tokens, uniforms: Any, dtype: torch.dtype = torch.float32
) -> Any:
    """One launch: every row has the same pmfs and draft, and uniforms of its own, all in ``dtype``."""
    rows, gamma = len(uniforms), len(draft)
    given = torch.tensor(uniforms, device=device, dtype=dtype)
    batch = verify(
        torch.tensor(p, device=device, dtype=dtype).expand(rows, -1, -1),
        torch.tensor(q, device=device, dtype=dtype).expand(rows, -1, -1),
        torch.tensor(draft, device=device, dtype=torch.int64).expand(rows, gamma),
        torch.full((rows,), gamma, device=device),
        given[:, :gamma],
        given[:, gamma],
    )
    return batch.emitted.cpu().numpy()


def one_uniform(p: Any, q: Any, tokens: Any, lengths: Any, accepts: Any, finals: Any) -> Any:
    """Planted: the uniform that decided about the first draft decides about the last token too."""
    return verify_batched(p, q, tokens, lengths, accepts, accepts[:, 0])


def test_the_grid_law_on_the_device_is_the_targets(device: torch.device) -> None:
    """Float32 pmfs and uniforms, two hundred tables, no tolerance. Filled up by the target it must be the target's."""
    for denominator in range(2, 6):
        for seed in range(50):
            models = grid_tables(3, denominator, seed)
            law = chain_grid_law(partial(launched, device, verify_batched), models, (0,), 2).probabilities
            assert completed(law, models[0]) == target_law(Task(models[0], horizon=3), (0,))


def test_planted_uniform_used_twice_is_refuted_on_the_grid(device: torch.device) -> None:
    distances = []
    for seed in range(20):
        models = grid_tables(3, 4, seed)
        law = chain_grid_law(partial(launched, device, one_uniform), models, (0,), 2, cells=12).probabilities
        wanted = target_law(Task(models[0], horizon=3), (0,))
        found = completed(law, models[0])
        distances.append(sum(abs(found.get(x, 0) - wanted.get(x, 0)) for x in found.keys() | wanted.keys()) / 2)
    assert max(distances) > 0


def completed(law: Any, target: LanguageModel) -> dict[Tokens, Any]:
    """The law of three tokens, once the target alone has filled up every outcome."""
    whole: dict[Tokens, Any] = {}
    for tokens, mass in law.items():
        for rest, share in target_law(Task(target, horizon=3 - len(tokens)), (0, *tokens)).items():
            whole[tokens + rest] = whole.get(tokens + rest, 0) + mass * share
    return whole


# Samples at real vocabularies

ALARM = divide_alarm(1e-6, len(VOCABULARIES) * len(DTYPES))
MISS = 1e-3
DETECTABLE = 0.2
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
        """The very values as NumPy float64."""
        return self.p.double().cpu().numpy(), self.q.double().cpu().numpy()


def real_pair(size: int, dtype: torch.dtype, device: torch.device) -> Pair:
    """Logits in ``dtype``, pmfs stored in it. Heavy tokens at both ends and around block edges; 5 percent elsewhere.

    The last token is the heaviest on average: what loses it is far away in total variation.
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
    """Sum ``values`` ``[V]`` into the heavy tokens and, as -1 to -8, the segments of the others."""
    size = len(values)
    rest = values.copy()
    rest[pair.heavy] = 0
    segments = np.add.reduceat(rest, np.arange(SEGMENTS) * size // SEGMENTS)
    return {
        **{int(token): values[token].item() for token in pair.heavy},
        **{-1 - segment: mass.item() for segment, mass in enumerate(segments)},
    }


def sampled_cells(pair: Pair, verify: Any, samples: int, seed: int) -> dict[int, int]:
    """Draft one token from q on the CPU, verify on the device, count the first tokens that come out."""
    size, rng = len(pair.p), np.random.default_rng(seed)
    cumulative = pair.stored[1].cumsum()
    drafts = cumulative.searchsorted(rng.random(samples) * cumulative[-1], side="right")[:, None]
    device = pair.p.device
    inputs = Inputs(
        pair.p.expand(samples, 2, size),
        pair.q.expand(samples, 1, size),
        *(torch.tensor(x, device=device) for x in (drafts, np.ones(samples, dtype=np.int64))),
        *(torch.tensor(rng.random(shape), device=device) for shape in ((samples, 1), samples)),
    )
    chunk = max(1, (2**28 if device.type == "cuda" else 2**21) // size)
    tokens = in_chunks(verify, inputs, chunk).emitted[:, 0].cpu().numpy()
    return cells_of(pair, np.bincount(tokens, minlength=size))


def judged(pair: Pair, verify: Any) -> ConfirmedFit:
    """The two-stage test at the planned number of samples, its own negative control included."""
    law = cells_of(pair, first_token_law(pair))
    samples = samples_for(law, DETECTABLE, stage_level(ALARM.each), MISS / 2)
    return confirmed_fit(
        partial(sampled_cells, pair, verify), law, samples=samples, false_alarm=ALARM.each, miss=MISS, seed=0
    )


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
@pytest.mark.parametrize("size", VOCABULARIES)
def test_the_first_token_has_the_targets_law(size: int, dtype: torch.dtype, device: torch.device) -> None:
    """False alarm 1e-6 over all twelve. A total variation of 0.2, and the 0.05 outside the heavy tokens, is seen."""
    pair = real_pair(size, dtype, device)
    fit = judged(pair, verify_batched)
    tell(f"{fit.first.samples} samples, {fit.first.cells} cells, p-value {fit.first.p_value:.2g}, detectable TV")
    tell(f"{fit.detectable_tv:.3f} + 0.05 at false alarm {fit.false_alarm:.1e}, miss {fit.miss}")
    assert fit.verdict == FitVerdict.FITS
    assert fit.detectable_tv <= DETECTABLE


def without_last_block(p: Any, *others: Any) -> Any:
    """Planted: the loop over blocks of 1024 ends one early."""
    cut = p.clone()
    cut[..., (p.shape[-1] - 1) // BLOCK * BLOCK :] = 0
    return verify_batched(cut, *others)


def draft_for_target(p: Any, q: Any, *others: Any) -> Any:
    """Planted: q is read where p should be, and everything drafted is accepted."""
    return verify_batched(torch.cat([q, q], dim=1), q, *others)


def next_token(*inputs: Any) -> Any:
    """Planted: the search returns one token further, where there is one."""
    batch = verify_batched(*inputs)
    return batch._replace(emitted=(batch.emitted + 1).clamp(max=inputs[0].shape[-1] - 1))


@pytest.mark.parametrize("planted", [without_last_block, draft_for_target, next_token])
@pytest.mark.parametrize("size", [8191, 8192, 8193])
def test_planted_kernels_are_refuted(size: int, planted: Any, device: torch.device) -> None:
    assert judged(real_pair(size, torch.float32, device), planted).verdict == FitVerdict.REFUTED


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
