"""Drafts of heads: a product of their most likely tokens that contains every prefix."""

from __future__ import annotations

import pytest

from reference.drafters.heads import heads_drafter
from reference.trees import path_tokens
from test_support.laws.rational import always, pmf


def test_heads_make_a_product_that_is_prefix_closed():
    heads = [always(pmf(".5", ".3", ".2")), always(pmf(".1", ".2", ".7"))]
    draft = heads_drafter(heads, (2, 2)).propose(None, None, (0,), 9, None)
    assert [path_tokens(draft, node) for node in range(6)] == [(0,), (0, 2), (0, 1), (1,), (1, 2), (1, 1)]
    assert heads_drafter(heads, (2, 2)).propose(None, None, (0,), 1, None).tokens == (0, 1)
    with pytest.raises(ValueError, match=r"widths are \(2,\) for 2 heads, expected one of at least 1 for each"):
        heads_drafter(heads, (2,))
