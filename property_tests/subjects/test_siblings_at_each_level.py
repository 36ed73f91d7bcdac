"""A fault in the test of one sibling at one level of a tree is refuted, in the quick plan and in batches too."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.testing import check_verifier

pytestmark = pytest.mark.usefixtures("unexplained", "named_checks_alone")

RNG = np.random.default_rng()
NEVER = (9, 9)
Rows = np.ndarray[Any, np.dtype[Any]]
Drawn = Literal["with_replacement", "without_replacement", "top_k"]


def normalised(weights: Rows) -> Rows:
    """Return the weights divided by their sum, or unchanged if the sum is 0."""
    return weights / weights.sum() if weights.sum() > 0 else weights


def one_tree(drafts: Drawn, wrong: tuple[int, int]) -> Any:
    """Return the rule for such drafts, with a fault at the level and sibling ``wrong``, both counted from 0.

    * With replacement: after a rejection of this sibling the residual is that of the unchanged p.
    * Without replacement: the whole q is subtracted, not q without the earlier siblings.
    * Top-k: the sibling is tested with p, which is not normalised after the earlier siblings were removed.
    """

    def verify(p: Rows, q: Any, parents: Rows, tokens: Rows) -> list[int]:
        node = -1
        out: list[int] = []
        while True:
            left = np.array(p[node + 1])
            children = [child for child, parent in enumerate(parents) if parent == node]
            rest = np.array(q[children[0]]) if children and q is not None else np.ones_like(left)
            for number, child in enumerate(children):
                token, fault = tokens[child], wrong == (len(out), number)
                if RNG.random() * rest[token] < (p[node + 1] if fault and q is None else left)[token]:
                    node = child
                    break
                if q is None:
                    left[token] = 0
                elif drafts == "with_replacement":
                    left = normalised(np.maximum((p[node + 1] if fault else left) - q[child], 0))
                else:
                    left = normalised(np.maximum(left - (q[child] if fault else rest), 0))
                    rest[token] = 0
                    rest = normalised(rest)
                left = normalised(left)
            else:
                last = left if left.sum() > 0 else p[node + 1]
                return [*out, int(RNG.choice(len(last), p=last))]
            out.append(int(token))

    return verify


def trees_of_a_batch(verify: Any) -> Any:
    """Return a verifier of batches that calls ``verify`` for each tree."""

    def of_batch(p: Rows, q: Any, parents: Rows, tokens: Rows) -> list[list[int]]:
        return [verify(p[b], None if q is None else q[b], parents[b], tokens[b]) for b in range(len(p))]

    return of_batch


def status(verify: Any, drafts: Drawn, form: Any = "tree") -> Status:
    """Return the verdict of the quick plan on the law of a verifier of such drafts."""
    [verdict] = check_verifier(
        verify, form=form, drafts=drafts, checks=["law_is_target"], fail_fast=True, on_fail=None, quick=True
    )
    return verdict.status


@pytest.mark.thorough(keep=9)
@pytest.mark.parametrize("drafts", ["with_replacement", "without_replacement", "top_k"])
@pytest.mark.parametrize("wrong", [(1, 2), (2, 1), (2, 2)], ids=str)
def test_a_fault_at_one_sibling_is_refuted(drafts: Drawn, wrong: tuple[int, int]) -> None:
    assert status(one_tree(drafts, wrong), drafts) is Status.REFUTED


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("drafts", ["with_replacement", "without_replacement", "top_k"])
def test_the_right_rule_holds(drafts: Drawn) -> None:
    assert status(one_tree(drafts, NEVER), drafts) is Status.HOLDS


@pytest.mark.thorough
@pytest.mark.parametrize("wrong", [(1, 2), (2, 1), NEVER], ids=str)
def test_batches_of_trees_are_examined_at_each_level(wrong: tuple[int, int]) -> None:
    verify = trees_of_a_batch(one_tree("without_replacement", wrong))
    expected = Status.HOLDS if wrong == NEVER else Status.REFUTED
    assert status(verify, "without_replacement", "batched_tree") is expected
