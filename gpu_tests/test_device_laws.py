"""Exact laws on the device: of a decoder, by enumeration with pmfs on the device.

Of its verifier, on a grid of uniforms.

Samples at real vocabularies are in ``test_sampled_laws_on_device``.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

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
    verify_batched,
)
from reference.verifiers.speculative_sampling import speculative_sampling
from specverify.laws.enumeration import decoder_law
from specverify.laws.grid import chain_grid_law, grid_tables
from specverify.laws.law import rounding_bound, target_law, total_variation
from specverify.laws.tables import mixed_with, softmax_table

# The exact law by enumeration, with pmfs that live on the device


def from_target(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Planted bug: the replacement for a rejected draft is drawn from p."""
    for i, token in enumerate(draft.tokens):
        p = target(prefix + draft.tokens[:i])
        if not flip(draws, accept_probability(p, draft.pmfs[i], token), ("accept", i)):
            return Verified((*draft.tokens[:i], draws.categorical(p, ("residual", i))), i)
    return Verified((*draft.tokens, draws.categorical(target(prefix + draft.tokens), ("bonus",))), len(draft.tokens))


def device_task(dtype: torch.dtype, device: torch.device) -> Task:
    """Return a task whose models are tables with one pmf per context, stored as tensors on the device."""

    def on_it(model: LanguageModel) -> LanguageModel:
        return lambda tokens: torch.tensor(model(tokens), dtype=dtype, device=device)

    target = softmax_table(3, 1.0, seed=0)
    return Task(on_it(target), on_it(mixed_with(target, softmax_table(3, 1.0, seed=1), 0.5)), horizon=3)


def decoder(task: Task, verify: Verifier) -> Decoder:
    assert task.draft is not None
    return chain_decoder(task, model_drafter(task.draft), constant(2), verify)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_the_enumerated_law_of_device_pmfs_is_the_targets(dtype: torch.dtype, device: torch.device) -> None:
    """The enumerated law of pmfs on the device is the target's within ``rounding_bound``.

    The enumerator only asks which entries of a pmf are positive, and multiplies them.
    """
    task = device_task(dtype, device)
    wanted = target_law(task, (0,))
    law = decoder_law(decoder(task, speculative_sampling), (0,))
    bound = rounding_bound(law, torch.finfo(dtype).eps)
    assert total_variation(law, wanted).high <= bound
    planted = decoder_law(decoder(task, from_target), (0,))
    assert total_variation(planted, wanted).low > 100 * bound


# The exact law of the kernel itself, on a grid


def launched(
    device: torch.device, verify: Any, p: Any, q: Any, draft: Tokens, uniforms: Any, dtype: torch.dtype = torch.float32
) -> Any:
    """Return the result of one launch.

    All rows have the same pmfs and draft, each row has its own uniforms, and everything is in ``dtype``.
    """
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
    """Planted bug: the uniform that decided about the first draft also decides about the last token."""
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
        law = chain_grid_law(partial(launched, device, one_uniform), models, (0,), 2).probabilities
        wanted = target_law(Task(models[0], horizon=3), (0,))
        found = completed(law, models[0])
        distances.append(sum(abs(found.get(x, 0) - wanted.get(x, 0)) for x in found.keys() | wanted.keys()) / 2)
    assert max(distances) > 0


def completed(law: Any, target: LanguageModel) -> dict[Tokens, Any]:
    """Return the law of three tokens after the target alone has completed every shorter outcome."""
    whole: dict[Tokens, Any] = {}
    for tokens, mass in law.items():
        for rest, share in target_law(Task(target, horizon=3 - len(tokens)), (0, *tokens)).items():
            whole[tokens + rest] = whole.get(tokens + rest, 0) + mass * share
    return whole
