"""Draft trees in a line of text."""

from __future__ import annotations

import pytest

from reference import Draft, chain
from specverify.checks.explaining.drawn_trees import drawn, is_tree, kept, node_named

TREE = Draft((1, 2, 0, 2), (-1, -1, 0, 2), (None,) * 4)


def test_a_tree_is_drawn_in_a_line_and_its_nodes_are_named():
    assert drawn(TREE) == "tree #0=1 [#2=0 [#3=2]] #1=2"
    assert node_named(TREE, -1) == "root"
    assert node_named(TREE, 1) == "#1 (token 2 below the root)"
    assert node_named(TREE, 3) == "#3 (token 2 below #2)"
    assert is_tree(TREE)
    assert not is_tree(chain((0, 1), (None, None)))


@pytest.mark.parametrize(
    ("emitted", "said"),
    [
        ((1, 0, 2, 2), "keeps #0 #2 #3, then 2"),
        ((1, 0, 2), "keeps #0 #2, then 2"),
        ((2, 0), "keeps #1, then 0"),
        ((2, 0, 0), "keeps #1, then 0, 0"),
        ((0,), "keeps nothing, then 0"),
    ],
)
def test_what_is_kept_is_the_path_that_the_tokens_follow(emitted, said):
    assert kept(TREE, emitted) == said
