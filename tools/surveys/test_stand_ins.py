"""vLLM's compiled CPU kernels against statements of the same functions in PyTorch, on thousands of calls.

Run by ``nox -s engines -- vllm``, where the engine is installed. A difference is a fault of the CPU build that the
table of corrections lists; a statement with a planted fault must differ too.
"""

from __future__ import annotations

from functools import partial

import pytest

pytest.importorskip("vllm", reason="needs the engine: nox -s engines -- vllm")

import torch
import vllm._custom_ops  # noqa: F401 - loads the compiled functions
from vllm.utils import cpu_triton_utils as stand_ins

from specverify.engines.vllm import kernel_statements as kernels

CALLS, VOCABULARY, MOST = 1000, 8, 3


def batch(numbers):
    """Return drafts of several requests, their end positions, and the other arguments of a kernel."""
    lengths = torch.randint(0, MOST + 1, (int(torch.randint(1, 6, (1,), generator=numbers)),), generator=numbers)
    ends, total = lengths.cumsum(0).to(torch.int32), int(lengths.sum())
    drafts = torch.randint(0, VOCABULARY, (total,), generator=numbers, dtype=torch.int32)
    target, draft = (torch.softmax(2 * torch.randn(total, VOCABULARY, generator=numbers), -1) for _ in range(2))
    return lengths, ends, drafts, target, draft


def written(launch, kind, shape, fill, *given):
    output = torch.full(shape, fill, dtype=kind)
    launch(output, *given)
    return output


def same_expand(kind, ours, numbers):
    lengths, ends, *_ = batch(numbers)
    given = (3 * torch.rand(len(lengths), generator=numbers)).to(kind), ends, 0, 1, 128
    launches = (stand_ins._expand_kernel_impl, ours)
    one, other = (written(launch, kind, (int(lengths.sum()),), -7, *given) for launch in launches)
    return torch.equal(one, other)


def same_greedy(ours, numbers):
    lengths, ends, drafts, *_ = batch(numbers)
    other = torch.randint(0, VOCABULARY, drafts.shape, generator=numbers)
    argmax = torch.where(torch.rand(drafts.shape, generator=numbers) < 0.5, drafts.long(), other)
    given = ends, drafts, argmax, torch.ones((len(lengths), 1), dtype=torch.int32), None, MOST
    launches = (stand_ins._rejection_greedy_sample_kernel_impl, ours)
    one, other = (written(each, torch.int32, (len(lengths), MOST + 1), -1, *given) for each in launches)
    return torch.equal(one, other)


def same_random(padded, probable, ours, numbers):
    lengths, ends, drafts, target, draft = batch(numbers)
    if padded:
        drafts[torch.rand(drafts.shape, generator=numbers) < 0.2] = -1
    uniform = torch.rand(drafts.shape, generator=numbers, dtype=torch.float64)
    greedy, bonus = torch.rand(len(lengths), generator=numbers) < 0.3, torch.ones((len(lengths), 1), dtype=torch.int32)
    given = (ends, drafts, draft if probable else None, target, bonus, (drafts + 1) % VOCABULARY, uniform, greedy, MOST)
    more = (VOCABULARY, None, not probable, False)
    launches = (stand_ins._rejection_random_sample_kernel_impl, ours)
    one, other = (written(each, torch.int32, (len(lengths), MOST + 1), -1, *given, *more) for each in launches)
    return torch.equal(one, other)


def same_recovered(probable, ours, numbers):
    lengths, ends, drafts, target, draft = batch(numbers)
    noise = torch.empty(len(lengths), VOCABULARY).exponential_(generator=numbers).reciprocal()
    given = (ends, drafts, draft if probable else None, target, noise, VOCABULARY, 8192, not probable, False)
    launches = (stand_ins._sample_recovered_tokens_kernel_impl, ours)
    one, other = (written(each, torch.int32, drafts.shape, 0, *given) for each in launches)
    return torch.equal(one, other)


def differing(same):
    numbers = torch.Generator().manual_seed(0)
    return sum(not same(numbers) for _ in range(CALLS))


RIGHT = {
    "expand, int64": partial(same_expand, torch.int64, kernels.expand),
    "greedy": partial(same_greedy, kernels.rejection_greedy_sample),
    "random": partial(same_random, False, False, kernels.rejection_random_sample),
    "random, drawn drafts": partial(same_random, False, True, kernels.rejection_random_sample),
    "recovered": partial(same_recovered, False, kernels.sample_recovered_tokens),
    "recovered, drawn drafts": partial(same_recovered, True, kernels.sample_recovered_tokens),
}
FAULTY = {
    "expand, float32": partial(same_expand, torch.float32, kernels.expand),
    "expand, int32": partial(same_expand, torch.int32, kernels.expand),
    "random, padded": partial(same_random, True, True, kernels.rejection_random_sample),
}


def from_target(output, ends, drafts, draft_probs, target_probs, *more):
    kernels.sample_recovered_tokens(output, ends, drafts, None, target_probs, *more)


@pytest.mark.parametrize("name", RIGHT)
def test_a_stand_in_computes_what_is_stated(name):
    assert differing(RIGHT[name]) == 0


@pytest.mark.parametrize("name", FAULTY)
def test_a_stand_in_that_is_mended_does_not(name):
    assert differing(FAULTY[name]) > 0


def test_a_planted_fault_of_a_statement_is_seen():
    assert differing(partial(same_recovered, True, from_target)) > 0
