"""The releases of papers, in the order of the page. Each control follows the code of which it is the control."""

from __future__ import annotations

from test_support.shipped.papers_of_blocks import BLOCKS_AND_LOOSE_RULES
from test_support.shipped.papers_of_engines import SHIPPED_RULES
from test_support.shipped.papers_of_heads import HEADS_AND_MORE
from test_support.shipped.papers_of_matches import MATCHES
from test_support.shipped.papers_of_trees import ARGMAXES_AND_TREES
from test_support.shipped.papers_that_sample import HSD, SAMPLING

PAPERS = (*SAMPLING, *ARGMAXES_AND_TREES, *BLOCKS_AND_LOOSE_RULES, *HEADS_AND_MORE, *MATCHES, *SHIPPED_RULES)
__all__ = ["HSD", "PAPERS"]
