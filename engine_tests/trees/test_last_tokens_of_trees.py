"""A verifier of trees whose last token is a draw that it does not look at is judged at the ends of its numbers too."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.run.verify import Checklist, run_check
from specverify.subjects.tree_verifier import tree_subject

CHECK = check_named("support_at_boundary_draws")


def matched(p, q, parents, tokens, *, wrong=False):
    """A draw behind every node, all at once; a node stays while that behind its parent equals it."""
    said, node, found = torch.multinomial(p, 1)[:, 0], -1, []
    if wrong and torch.rand(()) >= 1 - 2**-24:
        said = p.argmin(-1)
    while node is not None:
        found.append(said[1 + node])
        below = [child for child, parent in enumerate(parents.tolist()) if parent == node]
        node = next((child for child in below if tokens[child] == said[1 + node]), None)
    return torch.stack(found)


@pytest.mark.parametrize(("wrong", "status"), [(False, Status.HOLDS), (True, Status.REFUTED)])
def test_a_tree_s_last_token_may_be_left_open_at_boundary_draws(wrong, status):
    subject = tree_subject(partial(matched, wrong=wrong), "matched", "top_k", ((-1, -1),))
    assert run_check(subject, CHECK, Checklist((CHECK,))).status is status
