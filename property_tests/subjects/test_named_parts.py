"""Results of verifiers that have several parts: the tokens are found by their name."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from specverify.subjects.named_parts import tokens_of
from specverify.testing import UnusableSubject, check_verifier


class Round(NamedTuple):
    tokens: list[int]
    accepted: int


@dataclass
class Emitted:
    output_token_ids: np.ndarray
    counts: int


def test_the_part_with_the_name_of_tokens_is_taken():
    ids = np.array([2, 0])
    assert tokens_of(Round([2, 0], 1)) == [2, 0]
    assert tokens_of(Emitted(ids, 1)) is ids
    assert tokens_of({"token_ids": ids, "accepted": 1}) is ids


@pytest.mark.parametrize(
    "answer", [([2, 0], 1), [2, 0], {"ids": [2, 0]}, {"tokens": [2], "token_ids": [0]}, SimpleNamespace(tokens=[2])]
)
def test_other_results_are_unchanged(answer):
    assert tokens_of(answer) is answer


def test_a_result_of_unnamed_parts_is_unusable_with_a_way_out():
    with pytest.raises(
        UnusableSubject, match=r"return the part with all emitted tokens alone, or name it, as in \{'tok"
    ):
        check_verifier(lambda p, q, draft_tokens: ([0], 0), checks=["law_is_target"])
