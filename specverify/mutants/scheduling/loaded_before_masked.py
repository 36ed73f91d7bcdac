"""The entry of every draft is loaded before the mask is applied: for -1 that is in front of the array."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.request import Aborted
from specverify.mutants.serving.verification import usable
from specverify.reference import Tokens


def touching(drafts: Tokens) -> int:
    """Return the number of drafts; raises ``Aborted`` where a guard page would be touched."""
    if min(drafts, default=0) < 0:
        raise Aborted(f"a read at offset {min(drafts)}")
    return usable(drafts)


MUTANT = in_situation(
    "ragged batch",
    "loaded-before-masked",
    "a placeholder is used as an address",
    category="M",
    citation="vllm-ascend PR #8531",
    usable=touching,
)
