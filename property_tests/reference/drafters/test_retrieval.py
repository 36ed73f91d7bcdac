"""Drafts retrieved from texts: continuations of the longest suffix, and their most frequent prefixes."""

from __future__ import annotations

import pytest

from reference import Draft
from reference.drafters.retrieval import continuations, retrieval_drafter


def test_continuations_follow_every_copy_of_the_longest_suffix():
    assert continuations((1, 2, 3, 1, 2), (), 4, 2) == [(3, 1)]
    assert continuations((1, 2), ((0, 1, 2, 5, 6), (1, 2, 7)), 4, 1) == [(5,), (7,)]
    assert continuations((9,), ((1, 2),), 4, 1) == []


def test_retrieval_keeps_the_most_frequent_prefixes():
    texts = ((1, 5, 6), (1, 5, 7), (1, 4, 4))
    drafter = retrieval_drafter(texts, longest=1, depth=2, nodes=3)
    assert drafter.propose(None, None, (1,), 9, None) == Draft((5, 4, 6), (-1, -1, 0), (None,) * 3)
    with pytest.raises(ValueError, match="expected at least 1, 1 and 0"):
        retrieval_drafter((), 0, 1, 1)
