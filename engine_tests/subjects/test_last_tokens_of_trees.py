"""A verifier of trees whose last token is a draw that it does not look at is judged at the ends of its numbers too."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.run.verify import Checklist, run_check
from specverify.subjects.forms import Form
from specverify.subjects.tree_verifier import tree_subject

CHECK = check_named("support_at_boundary_draws")


def matched(p, q, parents, tokens, *, wrong=False):
    """A draw behind every node, all at once; of nodes below the root, that which equals the root's draw stays."""
    said, above = torch.multinomial(p, 1)[:, 0], parents + 1
    if wrong and torch.rand(()) >= 1 - 2**-24:
        said = p.argmin(-1)
    kept = [node for node, agrees in enumerate((tokens == said[above]).tolist()) if agrees and not parents[node] + 1]
    return [*tokens[kept].tolist(), said[1 + kept[0] if kept else 0]]


@pytest.mark.parametrize(("wrong", "status"), [(False, Status.HOLDS), (True, Status.REFUTED)])
def test_a_tree_s_last_token_may_be_left_open_at_boundary_draws(wrong, status):
    subject = tree_subject(partial(matched, wrong=wrong), "matched", Form(drafts="top_k"), ((-1, -1),))
    assert run_check(subject, CHECK, Checklist((CHECK,))).status is status
