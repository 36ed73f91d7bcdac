"""A dynamic tree: the best paths of the draft's scores, ties, and refused sizes."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import Draft
from reference.drafters.dynamic_tree import dynamic_tree_drafter
from reference.trees import check_draft, path_tokens
from specverify.laws.model_strategies import prompts, tasks
from test_support.laws.rational import Q, always, pmf

F = Fraction


@given(tasks(3, 2, 5), prompts(3), st.integers(1, 3), st.integers(0, 3), st.integers(1, 8))
def test_a_dynamic_tree_holds_the_best_paths(task, prompt, width, depth, nodes):
    """With as many branches as tokens, the best ``nodes`` of all paths, ties to the shallower."""
    drafter = dynamic_tree_drafter(task.draft, width, depth, nodes)
    draft = check_draft(drafter.propose(None, None, prompt, 9, None))
    spelled = [path_tokens(draft, node) for node in range(len(draft.tokens))]
    assert len(spelled) <= nodes

    @cache
    def score(path):
        return score(path[:-1]) * task.draft(prompt + path[:-1])[path[-1]] if path else F(1)

    if width == 3:
        everything = [path for length in range(1, depth + 1) for path in product(range(3), repeat=length)]
        values = sorted((score(path) for path in everything if score(path)), reverse=True)[:nodes]
        if len(values) and 3**depth <= 9:
            assert sorted(map(score, spelled), reverse=True) == values


def test_ties_prefer_the_parent():
    """A drafter that is certain: every score is 1, and only the first nodes of the chain are connected."""
    drafter = dynamic_tree_drafter(always(pmf(0, 1)), 2, 4, 2)
    assert drafter.propose(None, None, (0,), 9, None) == Draft((1, 1), (-1, 0), (None, None))


@pytest.mark.parametrize("wrong", [(0, 1, 1), (1, -1, 1), (1, 1, 0)])
def test_a_dynamic_tree_of_nothing_is_refused(wrong):
    with pytest.raises(ValueError, match="expected at least 1, 1 and 0"):
        dynamic_tree_drafter(always(Q), *wrong)
