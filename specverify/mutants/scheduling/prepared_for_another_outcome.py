"""Drafts made ahead are looked up by how many were accepted, not by the token behind them: they saw another text."""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.reference import Decoder, Task
from specverify.reference.algorithms.pre_drafted import pre_drafting


def build(task: Task, gamma: int = 4, ahead: int = 4) -> Decoder:
    """Pre-drafted rounds whose cache does not compare the last token of a text."""
    return pre_drafting(task, gamma, ahead, lambda prepared, text: prepared[:-1] == text[:-1])


MUTANT = planted(
    "pre-drafted",
    "prepared-for-another-outcome",
    "uses drafts prepared behind another token",
    build,
    category="M",
    citation="plausible: a cache keyed by the accepted length",
    killed_by="law_is_target",
)
