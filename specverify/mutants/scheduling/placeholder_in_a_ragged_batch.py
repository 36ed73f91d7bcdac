"""Rows are padded with -1, which as an index is the last entry of the vocabulary, and the padding is judged too."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.reference import Tokens


def all_of(drafts: Tokens) -> int:
    """Return the padded length."""
    return len(drafts)


MUTANT = in_situation(
    "ragged batch",
    "placeholder-in-a-ragged-batch",
    "a placeholder is judged like a draft",
    category="M",
    citation="vllm-ascend issue #10045, PR #10043",
    usable=all_of,
)
