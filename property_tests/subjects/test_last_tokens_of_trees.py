"""A verifier of trees whose last token is a draw that it does not look at is judged at the ends of its numbers too."""

from __future__ import annotations

import random
from functools import partial

import pytest

from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.run.verify import Checklist, run_check
from specverify.subjects.tree_verifier import tree_subject

CHECK = check_named("support_at_boundary_draws")


def matched(p, q, parents, tokens, *, wrong=False):
    """A draw behind every node, kept while a node below says the same; or the token behind the greatest uniform."""
    node, found = -1, []
    while True:
        row = p[1 + node].tolist()
        token = random.choices(range(len(row)), row)[0]
        if wrong and random.random() >= 1 - 2**-53:
            token = row.index(min(row))
        found.append(token)
        below = [child for child, parent in enumerate(parents) if parent == node and tokens[child] == int(token)]
        if not below:
            return found
        node = below[0]


@pytest.mark.parametrize(("wrong", "status"), [(False, Status.HOLDS), (True, Status.REFUTED)])
def test_a_tree_s_last_token_may_be_left_open_at_boundary_draws(wrong, status):
    subject = tree_subject(partial(matched, wrong=wrong), "matched", "top_k", ((-1, -1),))
    assert run_check(subject, CHECK, Checklist((CHECK,))).status is status
