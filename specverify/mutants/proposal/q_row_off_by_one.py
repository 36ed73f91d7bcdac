"""The row of q that is read for a draft is the one before its own."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted
from specverify.mutants.proposal.declared import declaring
from specverify.reference import Decoder, Task
from specverify.reference.models import draft_model


def build(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling whose rows of q are late by one."""
    draft = draft_model(task)
    return declaring(task, gamma, draft, lambda tokens: draft(tokens[:-1] or tokens))


MUTANT = planted(
    "speculative-sampling",
    "q-row-off-by-one",
    "divides by the q of the position before",
    build,
    category="B",
    citation="transformers PR #28166",
    killed_by="law_is_target",
    examples=SHORT,
)
