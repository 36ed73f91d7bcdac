"""In a tree of drafts, a rejection at one level must not change how the siblings of the next level are tested."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.laws.deep_scenarios import LATE_TREE
from specverify.run.verify import Checklist, run_check
from specverify.subjects.forms import Drafts, Form
from specverify.subjects.subject import Variant
from specverify.subjects.tree_verifier import tree_subject

pytestmark = pytest.mark.usefixtures("unexplained")

RNG = np.random.default_rng()
NEVER = 9


def verifier(wrong_after: int) -> Any:
    """Return recursive rejection sampling of drafts with replacement.

    If at least ``wrong_after`` siblings were rejected at earlier levels, a sibling is tested with p in place of the
    residual.
    """

    def verify(p: Any, q: Any, parents: Any, tokens: Any) -> list[int]:
        node, rejected = -1, 0
        path: list[int] = []
        while True:
            left, here = p[node + 1], 0
            for child in (index for index, parent in enumerate(parents) if parent == node):
                row = p[node + 1] if rejected >= wrong_after else left
                if RNG.random() * q[child][tokens[child]] < row[tokens[child]]:
                    node = child
                    break
                residual = np.maximum(left - q[child], 0)
                left, here = residual / residual.sum() if residual.sum() > 0 else left, here + 1
            else:
                return [*path, int(RNG.choice(len(left), p=left))]
            path, rejected = [*path, int(tokens[node])], rejected + here

    return verify


def status_of(wrong_after: int, number: int) -> Status:
    """Return the verdict on the law of ``verifier(wrong_after)`` in one scenario of the tree of late paths."""
    drafts: Drafts = "with_replacement"
    subject = tree_subject(verifier(wrong_after), "it", Form(drafts=drafts))
    assert callable(subject.deep)
    cases = [case for case in subject.deep() if f"parents {LATE_TREE}" in case[0].label]
    variant, scenario = cases[number]
    alone = subject._replace(scenarios=(scenario,), deep=tuple).with_situations(Variant, (variant,))
    return run_check(alone, check_named("law_is_target"), Checklist(())).status


def test_siblings_after_a_rejection_at_an_earlier_level_are_tested_right() -> None:
    assert status_of(1, 0) is Status.REFUTED
    assert status_of(NEVER, 0) is Status.HOLDS


@pytest.mark.thorough
def test_siblings_after_rejections_at_two_levels_are_tested_right() -> None:
    assert status_of(2, 0) is Status.HOLDS
    assert status_of(2, 1) is Status.REFUTED
