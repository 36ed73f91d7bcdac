"""The quick plan has late drafts of batches, deep levels of trees and fourth siblings, though no list names them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.testing import check_verifier

pytestmark = pytest.mark.usefixtures("unexplained", "named_checks_alone")

RNG = np.random.default_rng()
Rows = np.ndarray[Any, np.dtype[Any]]


def drawn(weights: Rows) -> int:
    """Return a token drawn in proportion to the weights."""
    return int(RNG.choice(len(weights), p=weights / weights.sum()))


def batch(wrong_from: int) -> Any:
    """Return a verifier of batches that replaces draft ``wrong_from`` and later ones by draws from p."""

    def row(p: Rows, q: Rows, drafts: Rows) -> list[int]:
        for place, draft in enumerate(drafts):
            if RNG.random() * q[place][draft] >= p[place][draft]:
                left = p[place] if place >= wrong_from else np.maximum(p[place] - q[place], 0)
                return [*drafts[:place], drawn(left)]
        return [*drafts, drawn(p[len(drafts)])]

    def verify(p: Rows, q: Rows, draft_tokens: Rows, lengths: Rows) -> list[list[int]]:
        return [row(p[b], q[b], draft_tokens[b][:n]) for b, n in enumerate(lengths)]

    return verify


def tree(wrong_level: int, wrong_sibling: int) -> Any:
    """Return a verifier of trees of the most likely tokens, with two possible faults.

    From level ``wrong_level`` on the last token is drawn from p though children were rejected, and sibling number
    ``wrong_sibling`` stays possible after its rejection.
    """

    def verify(p: Rows, q: None, parents: Rows, tokens: Rows) -> list[int]:
        node, out = -1, list[int]()
        while True:
            left, accepted = np.array(p[node + 1]), None
            children = [child for child, parent in enumerate(parents) if parent == node]
            for number, child in enumerate(children):
                if RNG.random() * left.sum() < left[tokens[child]]:
                    accepted = child
                    break
                if number != wrong_sibling:
                    left[tokens[child]] = 0
            if accepted is None:
                return [*out, drawn(p[node + 1] if len(out) >= wrong_level else left)]
            out.append(int(tokens[accepted]))
            node = accepted

    return verify


TOP_K = {"form": "tree", "drafts": "top_k"}


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize(
    ("verify", "options", "status"),
    [
        (batch(9), {}, Status.HOLDS),
        (batch(2), {}, Status.REFUTED),
        (batch(6), {}, Status.REFUTED),
        (tree(9, 9), TOP_K, Status.HOLDS),
        (tree(2, 9), TOP_K, Status.REFUTED),
        (tree(3, 9), TOP_K, Status.REFUTED),
        (tree(9, 2), TOP_K, Status.REFUTED),
    ],
    ids=["batch", "draft 3", "draft 7", "tree", "level 3", "level 4", "third sibling"],
)
def test_a_late_fault_is_refuted(verify: Any, options: dict[str, Any], status: Status) -> None:
    [verdict] = check_verifier(verify, checks=["law_is_target"], on_fail=None, quick=True, **options)
    assert verdict.status is status
