"""The rejection kernels of vLLM as PyTorch states them: examples by hand, and the law that they have together."""

from __future__ import annotations

import pytest
import torch

from specverify.engines.vllm.kernel_statements import (
    eagle_prepare_inputs_padded,
    eagle_prepare_next_token_padded,
    expand,
    rejection_greedy_sample,
    rejection_random_sample,
    sample_recovered_tokens,
)

ROWS = 3000
P, Q = torch.tensor([0.5, 0.3, 0.2, 0.0]), torch.tensor([0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize("kind", [torch.float32, torch.int32, torch.int64])
def test_each_token_of_a_request_has_its_value_and_one_value_is_replaced(kind):
    output = torch.zeros(6, dtype=kind)
    expand(output, torch.tensor([3, 0, 5], dtype=kind), torch.tensor([2, 5, 6]), 0, 1, 128)
    assert output.tolist() == [3, 3, 1, 1, 1, 5]


def test_greedy_drafts_are_kept_up_to_the_first_that_is_another_token():
    output = torch.full((3, 3), -1)
    ends, bonus = torch.tensor([2, 4, 4]), torch.tensor([[7], [7], [7]])
    rejection_greedy_sample(output, ends, torch.tensor([1, 2, 1, 2]), torch.tensor([1, 2, 3, 2]), bonus, None, 2)
    assert output.tolist() == [[1, 2, 7], [3, -1, -1], [7, -1, -1]]


def emitted(drafts, draft_probs, recover=sample_recovered_tokens):
    """Return the first tokens of ``ROWS`` requests of one draft each."""
    torch.manual_seed(1)
    ends, target = torch.arange(1, ROWS + 1), P.expand(ROWS, 4)
    recovered, output = torch.zeros(ROWS, dtype=torch.long), torch.full((ROWS, 2), -1)
    noise = torch.empty(ROWS, 4).exponential_().reciprocal()
    recover(recovered, ends, drafts, draft_probs, target, noise, 4)
    uniform, random = torch.rand(ROWS, dtype=torch.float64), torch.zeros(ROWS, dtype=torch.bool)
    bonus = torch.zeros((ROWS, 1), dtype=torch.long)
    rejection_random_sample(output, ends, drafts, draft_probs, target, bonus, recovered, uniform, random, 1, 4)
    return torch.bincount(output[:, 0], minlength=4) / ROWS


def from_target(output, ends, drafts, draft_probs, target, noise, *_):
    """Recover from p, and not from the residual: a planted fault."""
    output.copy_((target * noise).argmax(-1))


@pytest.mark.parametrize("padded", [False, True])
def test_drafts_and_recovered_tokens_have_the_law_of_the_target(padded):
    drafts = torch.multinomial(Q, ROWS, replacement=True)
    if padded:  # what the grammar forbids under the target is padding, and is rejected
        drafts[drafts == 3] = -1
    assert (emitted(drafts, Q.expand(ROWS, 4)) - P).abs().sum() / 2 < 0.04
    assert (emitted(torch.full((ROWS,), 2), None) - P).abs().sum() / 2 < 0.04


def test_a_planted_fault_in_the_recovered_tokens_is_seen():
    drafts = torch.multinomial(Q, ROWS, replacement=True)
    assert (emitted(drafts, Q.expand(ROWS, 4), from_target) - P).abs().sum() / 2 > 0.1


def test_greedy_requests_and_requests_without_drafts_are_left_to_others():
    output, probs = torch.full((2, 2), -1), torch.tensor([[0.0, 1.0]])
    given = (torch.tensor([1, 1]), torch.tensor([1]), None, probs, torch.tensor([[0], [1]]), torch.tensor([0]))
    rejection_random_sample(output, *given, torch.tensor([0.5]), torch.tensor([True, False]), 1, 2)
    assert output.tolist() == [[-1, -1], [1, -1]]


def test_the_place_behind_the_accepted_drafts_and_the_token_there():
    counts, following = torch.zeros(3, dtype=torch.int32), torch.zeros(3, dtype=torch.int32)
    sampled = torch.tensor([[4, 5, -1], [6, -1, -1], [-1, -1, -1]])
    discarded, backup = torch.tensor([False, False, True]), torch.tensor([0, 0, 3])
    eagle_prepare_next_token_padded(sampled, discarded, backup, following, counts, 8, 3, 3)
    assert (following.tolist(), counts.tolist()) == ([5, 6, 3], [2, 1, 0])
    places, rejected = torch.zeros(3, dtype=torch.int32), torch.zeros(3, dtype=torch.int32)
    starts = torch.tensor([0, 3, 6, 7])
    eagle_prepare_inputs_padded(torch.tensor([2, 4, 4]), counts, starts, places, rejected, 3)
    assert (places.tolist(), rejected.tolist()) == ([1, 3, 6], [1, 2, 0])
