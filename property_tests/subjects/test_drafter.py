"""A drafter as a subject: how many drafts are requested and followed, and what it may return."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from property_tests.subjects.test_deep import drawn
from specverify.subjects.drafter import drafter_subject, proposed
from specverify.subjects.proposed import Proposed
from specverify.subjects.subject import UnusableSubject


def test_a_drafter_is_asked_for_eight_drafts_where_that_is_in_reach():
    def propose(tokens, gamma):
        q = np.array([[0.25, 0.75]] * gamma)
        drafts = [drawn(row) for row in q]
        return [*drafts[:4], *[0] * len(drafts[4:])], q

    subject = drafter_subject(propose, "a drafter", [(0,)])
    assert [program.source.gamma for program in subject.programs] == [1, 2, 3, 5, 6, 8]
    assert [program.source.gamma for program in drafter_subject(propose, "it", [(0,)], (2,)).programs] == [2]


def test_a_sixth_draft_of_three_tokens_is_followed():
    def propose(tokens, gamma):
        q = np.array([[0.5, 0.3, 0.2]] * gamma)
        return [drawn(row if i < 5 else [1, 1, 1]) for i, row in enumerate(q)], q

    subject = drafter_subject(propose, "a drafter", [(0,)])
    assert subject.programs[-1].source.gamma == 8
    assert subject.programs[-2].source.gamma == 6


@pytest.mark.parametrize("answer", [[1, 0], (1, 0), np.array([1, 0]), torch.tensor([1, 0]), ([1, 0], None)])
def test_token_ids_alone_are_drafts_without_pmfs(answer):
    assert proposed(answer) == Proposed((1, 0), None)


@pytest.mark.parametrize("answer", [[], (), np.array([], dtype=int)])
def test_no_drafts_may_be_returned_alone(answer):
    assert proposed(answer) == Proposed((), None)


@pytest.mark.parametrize("answer", [None, "01", ["0", "1"], [[1], [0], [1]], ([1, 0], None, None), np.eye(2)[0] / 2])
def test_other_results_are_unusable(answer):
    with pytest.raises(UnusableSubject):
        proposed(answer)
