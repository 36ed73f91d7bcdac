"""Drafters and schedules that were released against those of ``reference/``: the same drafts, the same slots."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from reference import as_pmf, chain
from reference.batches import best_slots
from reference.drafters.longest_match import longest_match
from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.run.verify import Checklist, run_check
from specverify.subjects.made_engine import made_subject
from specverify.subjects.request_lists import IN_TURN
from test_support.shipped import drafted_ahead

REUSE = check_named("draws_are_independent")


@pytest.mark.parametrize(("least", "predict"), [(1, 6), (2, 3), (1, 2)])
def test_the_automaton_copies_what_the_row_copies(least: int, predict: int) -> None:
    copied = drafted_ahead.automaton(predict)
    texts = [*product(range(2), repeat=7), *map(tuple, np.random.default_rng(0).integers(0, 4, (200, 13)).tolist())]
    assert all(longest_match(text, least, predict) == copied(text, least) for text in texts)


def test_the_automaton_does_not_copy_the_last_token() -> None:
    assert drafted_ahead.automaton(6)((3, 2, 3, 3, 3, 3, 1, 2, 1, 3, 1), 1) == (2, 1, 3)


def test_a_seed_of_every_step_is_found() -> None:
    """The trainer's ``seed=1234``: the second request's uniforms begin where those of the first began."""
    told = []
    for make in (drafted_ahead.spec_rl, drafted_ahead.RESEEDED):
        subject = made_subject(make, "spec-rl")
        names = {requests.name for requests in IN_TURN[-3:]}
        subject = subject.with_programs(tuple(item for item in subject.programs if item.name in names))
        told.append(run_check(subject, REUSE, Checklist((REUSE,))))
    assert [verdict.status for verdict in told] == [Status.HOLDS, Status.UNKNOWN]
    assert "torch.rand at speculative_decoding.py:11 begins from the seed of an earlier request" in told[1].statement


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
