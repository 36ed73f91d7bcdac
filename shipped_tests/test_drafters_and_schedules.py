"""Drafters and schedules that were released against those of ``reference/``: the same drafts, the same slots."""

from __future__ import annotations

from itertools import product

import drafted_ahead
import numpy as np
import pytest
import torch

from reference import as_pmf, chain
from reference.batches import best_slots
from reference.drafters.longest_match import longest_match


@pytest.mark.parametrize(("least", "predict"), [(1, 6), (2, 3), (1, 2)])
def test_the_automaton_copies_what_the_row_copies(least: int, predict: int) -> None:
    copied = drafted_ahead.automaton(predict)
    texts = [*product(range(2), repeat=7), *map(tuple, np.random.default_rng(0).integers(0, 4, (200, 13)).tolist())]
    assert all(longest_match(text, least, predict) == copied(text, least) for text in texts)


def test_the_automaton_does_not_copy_the_last_token() -> None:
    assert drafted_ahead.automaton(6)((3, 2, 3, 3, 3, 3, 1, 2, 1, 3, 1), 1) == (2, 1, 3)


def scheduled(confidences: np.ndarray, budget: int) -> list[int]:
    """Return what the row's schedule verifies where slot i of a request has the confidence ``confidences[r, i]``."""
    drafts = [chain(tuple(range(len(row))), tuple(as_pmf([float(value), 0.0]) for value in row)) for row in confidences]
    return list(best_slots(budget, lambda q, token: q[0])(drafts))


@pytest.mark.parametrize("seed", range(6))
def test_the_schedules_of_vllm_and_vllm_ascend_verify_the_slots_of_the_row(seed: int) -> None:
    confidences = np.random.default_rng(seed).uniform(0.1, 0.99, (3, 4))
    tensor = torch.tensor(confidences)
    for budget in range(1, 12):
        assert drafted_ahead.vllm_budget(tensor, budget) == scheduled(confidences, budget)
    for each in (1, 2, 3):
        assert drafted_ahead.ascend_budget(tensor.float(), each) == scheduled(confidences, 3 * each)
